//! The hot path: worker threads that pace, submit, reap and record.
//!
//! [`api`] is what goes in and out. [`worker`] is the loop. A [`ring::Ring`] brings calls to the kernel,
//! a [`target::Target`] says which calls an op is made of.

pub mod api;
pub mod dist;
pub mod keyspace;
pub mod pacer;
pub mod ring;
pub mod source;
pub mod target;
