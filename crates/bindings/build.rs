//! Compiles the library that database servers are started with (`crates/preload`) into what the extension carries.
//!
//! Cargo cannot make one library a part of another yet without an unstable option, so the compiler is called here: the
//! library has no dependency.

use std::error::Error;
use std::path::Path;
use std::process::Command;

const SOURCES: &str = "../preload/src";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let made = Path::new(&std::env::var("OUT_DIR")?).join("preload.so");
    let is_built_for = std::env::var("CARGO_CFG_TARGET_OS")? == "linux"
        && std::env::var("CARGO_CFG_TARGET_POINTER_WIDTH")? == "64"
        && std::env::var("CARGO_CFG_TARGET_ENV")? == "gnu";
    if !is_built_for {
        std::fs::write(made, [])?; // Whoever asks for it is told.
        return Ok(());
    }
    let mut compiler = Command::new(std::env::var("RUSTC")?);
    compiler.args(["--edition=2024", "--crate-name=nephoscope_preload", "--crate-type=cdylib"]);
    compiler.args(["-Copt-level=3", "-Cpanic=abort", "-Clto", "-Ccodegen-units=1", "-Cstrip=symbols"]);
    compiler.args(["--target", &std::env::var("TARGET")?]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        compiler.arg("-C").arg(format!("linker={}", linker.display()));
    }
    compiler.arg(Path::new(SOURCES).join("lib.rs")).arg("-o").arg(made);
    if !compiler.status()?.success() {
        return Err("the library in crates/preload was not made".into());
    }
    Ok(())
}
