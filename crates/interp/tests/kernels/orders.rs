//! Random kernels that communicate through shared and global memory: a kernel accepted in one order
//! is accepted in every order with the same results, and one refused in one is refused in all.

use systola_interp::Arrays;
use systola_interp::kernel::{FaultKind, Options, Order, RunError, run_kernel_program};

use crate::builder::random::draw;

#[derive(Default, Debug)]
struct Tally {
    accepted: usize,
    raced: usize,
    stuck: usize,
}

fn check(with_flags: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..1500 {
        let program = draw(seed, with_flags);
        assert_eq!(program.verify(), [""; 0], "{program}");
        let orders = [Order::InOrder, Order::Reversed];
        let orders = orders.into_iter().chain((1..6).map(Order::Shuffled));
        let results: Vec<Result<_, RunError>> = orders
            .map(|order| {
                let options = Options {
                    order,
                    ..Options::default()
                };
                run_kernel_program(&program, &[], &Arrays::new(), &options)
            })
            .collect();
        for result in &results[1..] {
            match (&results[0], result) {
                (Ok(a), Ok(b)) => assert_eq!(a, b, "seed {seed}\n{program}"),
                (Err(_), Err(_)) => {}
                (Ok(_), Err(e)) | (Err(e), Ok(_)) => {
                    panic!("seed {seed}: only one order finds {e}\n{program}")
                }
            }
        }
        match &results[0] {
            Ok(_) => tally.accepted += 1,
            Err(error) => match error.fault() {
                Some(FaultKind::Race { .. }) => tally.raced += 1,
                Some(FaultKind::Deadlock { .. }) => tally.stuck += 1,
                Some(FaultKind::UndefinedStored { .. }) => {}
                other => panic!("seed {seed}: {other:?}\n{program}"),
            },
        }
    }
    tally
}

#[test]
fn barriers_order_or_nothing_is_accepted() {
    let tally = check(false);
    assert!(tally.accepted > 100 && tally.raced > 100, "{tally:?}");
}

#[test]
fn flags_order_or_nothing_is_accepted() {
    let tally = check(true);
    assert!(
        tally.accepted > 100 && tally.raced > 100 && tally.stuck > 20,
        "{tally:?}"
    );
}
