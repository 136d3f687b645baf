//! One stage: workers, collector, marks, live figures.

mod grid;
mod live;
