//! How agents get onto other machines: over ssh, in a Slurm job, as a Kubernetes job. The last two are printed, for the user to read and
//! to submit; what is printed holds no secret but where it says so.

pub mod hosts;
pub mod kubernetes;
mod kubernetes_script;
pub mod place;
pub mod slurm;
pub mod ssh;
mod ssh_host;
