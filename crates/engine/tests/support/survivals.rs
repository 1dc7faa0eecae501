//! What a test has proved to be survived, put on record for the table in `docs/reliability.md`.

use std::path::Path;

use nephoscope_drivers::ErrorClass;
use serde_json::json;

/// The name of the test that this stands in, as `cargo test` has it, behind its program's name.
#[macro_export]
macro_rules! this_test {
    () => {{
        fn here() {}
        std::any::type_name_of_val(&here).trim_end_matches("::here")
    }};
}

/// A fault, and what is promised of a run that meets it.
#[derive(Clone, Copy, Debug)]
pub struct Survival {
    /// The test's name: [`this_test`].
    pub test: &'static str,
    /// What fails: `network` or `server`.
    pub part: &'static str,
    pub fault: &'static str,
    pub promise: &'static str,
    /// Classes of the errors that are counted: the first is met, the others may be, and no other is.
    pub errors: &'static [ErrorClass],
    /// What the run is measured on.
    pub on: &'static str,
}

impl Survival {
    /// Puts it on record that the promise was kept, or that this machine lacks what is needed to see it.
    pub fn record(&self, proved: bool) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/survivals/rust");
        std::fs::create_dir_all(&folder).unwrap();
        let errors: Vec<&str> = self.errors.iter().map(|class| class.name()).collect();
        let record = json!({
            "test": self.test, "part": self.part, "fault": self.fault, "promise": self.promise,
            "errors": errors, "on": self.on, "proved": proved,
        });
        let file = folder.join(format!("{}.json", self.test.replace("::", ".")));
        std::fs::write(file, format!("{record}\n")).unwrap();
    }
}
