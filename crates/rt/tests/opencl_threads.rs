//! The first query of OpenCL devices, by many threads at once. In its own process: a process has
//! only one first query.

use std::sync::Barrier;

use systola_rt::opencl::{DeviceInfo, devices};

#[test]
fn threads_that_ask_first_at_once_see_the_same_devices() {
    const THREADS: usize = 8;
    let start = Barrier::new(THREADS);
    let query = || -> Result<Vec<DeviceInfo>, String> {
        start.wait();
        devices().map_err(|error| error.to_string())
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(query)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
}
