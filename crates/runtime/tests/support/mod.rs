//! Tests that run on every kind of runtime.

use nephoscope_runtime::{Io, Runtime};

/// A runtime of each kind that this kernel allows: epoll it always does.
pub(crate) fn runtimes() -> Vec<Runtime> {
    let mut all = vec![Runtime::with_io(Io::Epoll).unwrap()];
    match Runtime::with_io(Io::Uring) {
        Ok(runtime) => all.push(runtime),
        Err(error) => println!("not tested: io_uring ({error})"),
    }
    all
}

/// Makes a test of each of these, which runs on every kind of runtime.
macro_rules! on_each {
    ($($name:ident),* $(,)?) => {
        mod on_each {
            $(
                #[test]
                fn $name() {
                    crate::support::runtimes().iter().for_each(super::$name);
                }
            )*
        }
    };
}
