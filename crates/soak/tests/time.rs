//! Simulated time stands still, and is one thread's own.

use nephoscope_runtime::{Runtime, Simulation, clock};
use std::pin::pin;
use std::task::Poll;

#[test]
fn time_stands_still_on_the_thread_that_simulates_it_and_nowhere_else() {
    let before = clock::now();
    let simulation = Simulation::begin(7);
    assert_eq!((clock::now(), clock::wall(), clock::thread_cpu()), (7, 7, 0));
    let elsewhere = std::thread::spawn(clock::now).join().unwrap();
    assert!(elsewhere >= before);
    simulation.advance(9);
    simulation.advance(8);
    assert_eq!(clock::now(), 9, "time does not go back");
    drop(simulation);
    assert!(clock::now() >= elsewhere);
}

#[test]
fn a_runtime_stops_where_it_would_wait_and_goes_on_when_time_does() {
    let simulation = Simulation::begin(100);
    let runtime = Runtime::new().unwrap();
    let mut main = pin!(runtime.sleep_until(250));
    let other = runtime.sleep_until(150);
    runtime.spawn(other);
    assert_eq!(runtime.run_until_idle(main.as_mut()), Poll::Pending);
    assert_eq!((runtime.next_timer(), runtime.tasks()), (Some(150), 1));
    simulation.advance(150);
    assert_eq!(runtime.run_until_idle(main.as_mut()), Poll::Pending);
    assert_eq!((runtime.next_timer(), runtime.tasks()), (Some(250), 0));
    simulation.advance(250);
    assert_eq!(runtime.run_until_idle(main.as_mut()), Poll::Ready(()));
}

#[test]
#[should_panic(expected = "time stands still")]
fn tasks_that_never_wait_are_found_out() {
    let _simulation = Simulation::begin(100);
    let runtime = Runtime::new().unwrap();
    let endless = pin!(async {
        loop {
            nephoscope_runtime::Yield::default().await;
        }
    });
    let _ = runtime.run_until_idle::<dyn Future<Output = ()>>(endless);
}
