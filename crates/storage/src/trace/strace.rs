//! What strace prints with `-f -ttt -T -y`: calls that read and write at an offset, and those that make durable.
//!
//! Calls that another process interrupts are printed in two lines, which are put together by the process's number.

use std::collections::HashMap;

use super::fields::{seconds, show, small, text, unsigned};
use super::{Entry, Format, Parser, Target};
use crate::Operation;

pub(super) const FORMAT: Format = Format {
    name: "strace",
    about: "what strace -f -ttt -T -y prints of pread64, pwrite64, their vector forms, fsync, fdatasync, fallocate",
    certain: true,
    choices: &[],
    make: |_| Box::new(Strace::default()),
};

/// The most bytes of lines whose second half is still to come.
const MOST_UNFINISHED: usize = 16 << 20;
const UNFINISHED: &[u8] = b"<unfinished ...>";

#[derive(Default)]
struct Strace {
    /// The time and the text of a call that has begun, by its process.
    unfinished: HashMap<u32, (i64, Vec<u8>)>,
    bytes: usize,
}

impl Parser for Strace {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        if line.starts_with(b"strace: ") {
            return Ok(());
        }
        let (process, rest) = process(line)?;
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let time_us =
            seconds(&rest[..end], "the time").map_err(|why| format!("{why}, as strace -ttt prints them"))?;
        let rest = rest[end..].trim_ascii();
        if rest.starts_with(b"+++") || rest.starts_with(b"---") {
            return Ok(());
        }
        if let Some(rest) = rest.strip_prefix(b"<... ") {
            return self.resumed(process, rest, target);
        }
        if let Some(begun) = rest.strip_suffix(UNFINISHED) {
            return self.stash(process, time_us, begun.trim_ascii_end(), target);
        }
        call(time_us, rest, target)
    }
}

impl Strace {
    fn stash(
        &mut self,
        process: u32,
        time_us: i64,
        begun: &[u8],
        target: &mut Target<'_>,
    ) -> Result<(), String> {
        self.bytes += begun.len();
        if let Some((_, lost)) = self.unfinished.insert(process, (time_us, begun.to_vec())) {
            self.bytes -= lost.len();
            target.intake.leave_out("calls of which the trace has no end");
        }
        if self.bytes > MOST_UNFINISHED {
            return Err(format!("more than {MOST_UNFINISHED} bytes of calls that are unfinished"));
        }
        Ok(())
    }

    fn resumed(&mut self, process: u32, rest: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        let Some(end) = rest.iter().position(|byte| *byte == b'>') else {
            return Err(format!("{} is no call that is resumed", show(rest)));
        };
        let Some((time_us, mut whole)) = self.unfinished.remove(&process) else {
            target.intake.leave_out("calls of which the trace has no beginning");
            return Ok(());
        };
        self.bytes -= whole.len();
        whole.extend_from_slice(&rest[end + 1..]);
        call(time_us, &whole, target)
    }
}

/// The number of the process that a line begins with, 0 if it has none, and the rest.
fn process(line: &[u8]) -> Result<(u32, &[u8]), String> {
    let line = line.trim_ascii_start();
    let (number, rest) = if let Some(rest) = line.strip_prefix(b"[pid") {
        let end =
            rest.iter().position(|byte| *byte == b']').ok_or_else(|| format!("{} has no ]", show(line)))?;
        (rest[..end].trim_ascii(), &rest[end + 1..])
    } else {
        let end = line.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
        if line.get(end) != Some(&b' ') {
            return Ok((0, line));
        }
        line.split_at(end)
    };
    Ok((small(number, "the number of the process")?, rest.trim_ascii_start()))
}

/// What a call of a name is: its operation, and the places of its offset and its length among its arguments. The length
/// of what reads or writes is what it returns.
fn known(name: &[u8]) -> Option<(Operation, Option<usize>)> {
    match name {
        b"pread64" | b"pread" | b"preadv" | b"preadv2" => Some((Operation::Read, Some(3))),
        b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => Some((Operation::Write, Some(3))),
        b"fsync" | b"fdatasync" => Some((Operation::Sync, None)),
        b"fallocate" => Some((Operation::Discard, Some(2))),
        _ => None,
    }
}

fn call(time_us: i64, text_of: &[u8], target: &mut Target<'_>) -> Result<(), String> {
    let no_call = || format!("{} is no call (allowed: NAME(ARGUMENTS) = RESULT <SECONDS>)", show(text_of));
    let open = text_of.iter().position(|byte| *byte == b'(').ok_or_else(no_call)?;
    let (name, rest) = (&text_of[..open], &text_of[open + 1..]);
    let Some((operation, at)) = known(name) else {
        target.intake.leave_out(match name {
            b"read" | b"write" | b"readv" | b"writev" => "calls of read or write, which have no offset",
            _ => "calls that are no requests",
        });
        return Ok(());
    };
    let (file, rest) = descriptor(rest)?;
    let (arguments, rest) = arguments(rest).ok_or_else(no_call)?;
    let Some((result, latency_us)) = result(rest).ok_or_else(no_call)? else {
        target.intake.leave_out("calls that failed or did not return");
        return Ok(());
    };
    if operation == Operation::Discard && !contains(arguments[1], b"FALLOC_FL_PUNCH_HOLE") {
        target.intake.leave_out("calls that are no requests");
        return Ok(());
    }
    if arguments[3] == b"-1"
        || (operation != Operation::Sync && operation != Operation::Discard && result == 0)
    {
        let none = if result == 0 {
            "calls that moved no byte"
        } else {
            "calls of read or write, which have no offset"
        };
        target.intake.leave_out(none);
        return Ok(());
    }
    let offset = at.map_or(Ok(0), |at| unsigned(arguments[at], "the offset"))?;
    let bytes = match operation {
        Operation::Sync => 0,
        Operation::Discard => unsigned(arguments[3], "the length")?,
        Operation::Read | Operation::Write => result,
    };
    target.take(text(file, "the file")?, &Entry { time_us, offset, bytes, operation, latency_us })
}

/// The file of the descriptor that a call's arguments begin with, and what comes behind it.
fn descriptor(rest: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let missing = || {
        format!("the descriptor has no file in {} (allowed: 3</path>, as strace -y prints it)", show(rest))
    };
    let open = rest.iter().position(|byte| !byte.is_ascii_digit()).ok_or_else(missing)?;
    let path =
        rest.get(open..).and_then(|path| path.strip_prefix(b"<")).filter(|_| open > 0).ok_or_else(missing)?;
    let end = path.windows(2).position(|pair| pair == b">," || pair == b">)").ok_or_else(missing)?;
    // What kind of device it is stands behind its path, by -yy.
    let name = &path[..end];
    let kind = name.iter().position(|byte| *byte == b'<').filter(|_| name.ends_with(b">"));
    Ok((&name[..kind.unwrap_or(end)], &path[end + 1..]))
}

/// The arguments behind the first, whose place is empty, and what comes behind the bracket that ends them.
fn arguments(text: &[u8]) -> Option<([&[u8]; 6], &[u8])> {
    let mut found: [&[u8]; 6] = [b""; 6];
    let (mut count, mut start, mut depth, mut quoted, mut at) = (0, 0, 0_u32, false, 0);
    while at < text.len() {
        match text[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            end @ (b')' | b',') if depth == 0 => {
                *found.get_mut(count)? = text[start..at].trim_ascii();
                (count, start) = (count + 1, at + 1);
                if end == b')' {
                    return Some((found, &text[start..]));
                }
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// What a call returned and how long it took, in microseconds, NaN without `-T`; nothing inside if it failed.
#[allow(clippy::option_option)] // A line that is none, and a call that has no result.
fn result(rest: &[u8]) -> Option<Option<(u64, f32)>> {
    let rest = rest.trim_ascii().strip_prefix(b"=")?.trim_ascii();
    if rest.starts_with(b"-") || rest.starts_with(b"?") {
        return Some(None);
    }
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let number = unsigned(&rest[..end], "the result").ok()?;
    let took = rest[end..].trim_ascii();
    if took.is_empty() {
        return Some(Some((number, f32::NAN)));
    }
    let took = took.strip_prefix(b"<")?.strip_suffix(b">")?;
    Some(Some((number, seconds(took, "the time that it took").ok()? as f32)))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    #[test]
    fn calls_of_several_processes_are_put_together() {
        let text = r#"
101 1700000000.000100 pread64(3</base/1>, "a\",) = 1\n"..., 8192, 16384) = 8192 <0.000012>
101 1700000000.000200 pwrite64(4</base/2 (deleted)>, "x",  <unfinished ...>
102 1700000000.000250 fdatasync(5</wal> <unfinished ...>
101 1700000000.000300 <... pwrite64 resumed>1, 0) = 1 <0.000099>
102 1700000000.002250 <... fdatasync resumed>) = 0 <0.002000>
102 1700000000.000400 preadv(3</base/1>, [{iov_base="(", iov_len=4096}, {iov_base=")"..., iov_len=4096}], 2, 0) = 8192
102 1700000000.000500 pwritev2(6</dev/sda<block 8:0>>, [{iov_base="", iov_len=512}], 1, 512, RWF_DSYNC) = 512 <0.000001>
102 1700000000.000600 fallocate(3</base/1>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 8192) = 0 <0.000001>
"#;
        let expected = [
            (0, "/base/1".to_owned(), 16384, 8192, "read", Some(12.0)),
            (100, "/base/2 (deleted)".to_owned(), 0, 1, "write", Some(99.0)),
            (150, "/wal".to_owned(), 0, 0, "sync", Some(2000.0)),
            (300, "/base/1".to_owned(), 0, 8192, "read", None),
            (400, "/dev/sda".to_owned(), 512, 512, "write", Some(1.0)),
            (500, "/base/1".to_owned(), 4096, 8192, "discard", Some(1.0)),
        ];
        assert_eq!(read("strace", &[], text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_request_is_left_out() {
        let text = r#"
strace: Process 7 attached
[pid     7] 1700000000.1 openat(AT_FDCWD, "/x", O_RDWR) = 3</x> <0.000001>
[pid     7] 1700000000.2 pread64(3</x>, 0x7f00, 10, 0) = -1 EIO (Input/output error) <0.000001>
[pid     7] 1700000000.2 pread64(3</x>, "", 10, 0) = 0 <0.000001>
[pid     7] 1700000000.2 pwritev2(3</x>, [], 0, -1, 0) = 3 <0.000001>
[pid     7] 1700000000.2 read(3</x>, "a", 10) = 1 <0.000001>
[pid     7] 1700000000.3 fsync(3</x>) = ?
[pid     7] 1700000000.3 --- SIGCHLD {si_signo=SIGCHLD} ---
[pid     7] 1700000000.3 +++ exited with 0 +++
1700000000.4 <... fsync resumed>) = 0 <0.1>
1700000000.5 fsync(3</x>) = 0
"#;
        assert_eq!(read("strace", &[], text).unwrap(), [(0, "/x".to_owned(), 0, 0, "sync", None)]);
    }

    #[test]
    fn lines_of_other_options_are_refused_with_the_option() {
        for (line, option) in [
            ("12:00:01 fsync(3</x>) = 0", "-ttt"),
            ("fsync(3</x>) = 0", "-ttt"),
            ("1700000000.5 fsync(3) = 0", "-y"),
        ] {
            let refused = read("strace", &[], line).unwrap_err();
            assert!(refused.contains(option) && refused.contains("line 1"), "{refused}");
        }
    }
}
