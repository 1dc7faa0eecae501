//! Every format over its example lines, and over lines that are none.

use proptest::prelude::*;

use super::*;
use crate::Operation;

/// Time, name, offset from the beginning of the file or device, bytes, operation, latency.
pub(super) type Found = (i64, String, u64, u32, &'static str, Option<f32>);

const SEGMENT: u64 = 1 << 20;

/// What a trace holds.
pub(super) fn read(format: &str, options: &[(&str, &str)], text: &str) -> Result<Vec<Found>, String> {
    read_bytes(Format::of(format)?, options, text.as_bytes())
}

fn read_bytes(format: &Format, options: &[(&str, &str)], text: &[u8]) -> Result<Vec<Found>, String> {
    let options: Vec<_> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut reader = Reader::new("trace", std::io::Cursor::new(text.to_vec()), format, &options)?;
    let (mut segments, mut found) = (Segments::new(SEGMENT)?, Vec::new());
    while let Some(columns) = reader.next(&mut segments)? {
        let table: Vec<_> = segments.table().collect();
        for request in (0..columns.len()).map(|at| columns.get(at)) {
            let (name, chunk) = table[request.segment as usize];
            let offset = u64::from(chunk) * SEGMENT + request.offset;
            let latency = Some(request.latency_us).filter(|latency| !latency.is_nan());
            let operation = request.operation.name();
            found.push((request.time_us, name.to_owned(), offset, request.bytes, operation, latency));
        }
    }
    assert_eq!(reader.intake().taken(), found.len() as u64);
    Ok(found)
}

type Expected = (i64, &'static str, u64, u32, &'static str, Option<f32>);

/// Lines as each format's description has them, and what they ask for.
pub(super) const EXAMPLES: &[(&str, &str, &[Expected])] = &[
    (
        "blkparse",
        "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000002197   697  P   N [kjournald]
  8,0    3        6     0.000005000   697  D   W 223490 + 8 [kjournald]
  8,0    1        7     0.000755000     0  C   W 223490 + 8 [0]
CPU3 (8,0):
 Reads Queued:           0,        0KiB	 Writes Queued:           1,        4KiB
",
        &[(0, "8,0", 114_426_880, 4096, "write", Some(750.0))],
    ),
    (
        "fio",
        "\
fio version 3 iolog
0 /dev/sda add
0 /dev/sda open
150 /dev/sda read 0 4096
1150 /dev/sda write 1048576 8192
1200 /dev/sda sync 0 0
1300 /dev/sda trim 65536 4096
1400 /dev/sda close
",
        &[
            (0, "/dev/sda", 0, 4096, "read", None),
            (1000, "/dev/sda", 1_048_576, 8192, "write", None),
            (1050, "/dev/sda", 0, 0, "sync", None),
            (1150, "/dev/sda", 65_536, 4096, "discard", None),
        ],
    ),
    (
        "strace",
        "\
4711 1700000000.000001 openat(AT_FDCWD, \"/data/base/5/1259\", O_RDWR) = 7</data/base/5/1259> <0.000010>
4711 1700000000.000100 pread64(7</data/base/5/1259>, \"\\0\\0\"..., 8192, 1056768) = 8192 <0.000021>
4711 1700000000.000200 fsync(7</data/base/5/1259>) = 0 <0.001500>
",
        &[
            (0, "/data/base/5/1259", 1_056_768, 8192, "read", Some(21.0)),
            (100, "/data/base/5/1259", 0, 0, "sync", Some(1500.0)),
        ],
    ),
    (
        "msr",
        "\
128166372003061629,hm,0,Read,383496192,32768,113736
128166372016382155,hm,0,Write,2181111808,4096,23045
",
        &[
            (0, "hm_0", 383_496_192, 32_768, "read", Some(11_373.6)),
            (1_332_053, "hm_0", 2_181_111_808, 4096, "write", Some(2304.5)),
        ],
    ),
    (
        "alibaba",
        "\
419,W,8792731648,16384,1577808144360767
725,R,59110326272,360448,1577808144360813
",
        &[
            (0, "419", 8_792_731_648, 16_384, "write", None),
            (46, "725", 59_110_326_272, 360_448, "read", None),
        ],
    ),
    (
        "tencent",
        "\
1538323199,6517678,8,1,1283
1538323200,106352960,64,0,1283
",
        &[
            (0, "1283", 3_337_051_136, 4096, "write", None),
            (1_000_000, "1283", 54_452_715_520, 32_768, "read", None),
        ],
    ),
    (
        "spc",
        "\
0,20941264,8192,W,0.551706,Alpha/NT
1,3072,4096,r,0.554041
",
        &[(0, "asu0", 10_721_927_168, 8192, "write", None), (2335, "asu1", 1_572_864, 4096, "read", None)],
    ),
];

#[test]
fn every_format_reads_its_example() {
    let names: Vec<_> = EXAMPLES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, FORMATS.map(|format| format.name));
    for (name, text, expected) in EXAMPLES {
        let found = read(name, &[], text).unwrap();
        let found: Vec<_> = found.iter().map(|f| (f.0, f.1.as_str(), f.2, f.3, f.4, f.5)).collect();
        assert_eq!(&found, expected, "{name}");
    }
}

#[test]
fn headers_and_ends_of_lines_of_windows_do_not_matter() {
    let headers = [
        ("msr", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        ("alibaba", "device_id,opcode,offset,length,timestamp"),
        ("tencent", "Timestamp,Offset,Size,IOType,VolumeID"),
        ("spc", "ASU,LBA,Size,Opcode,Timestamp"),
    ];
    for (name, header) in headers {
        let (_, text, expected) = EXAMPLES.iter().find(|example| example.0 == name).unwrap();
        let text = format!("{header}\n\n{text}").replace('\n', "\r\n");
        assert_eq!(read(name, &[], &text).unwrap().len(), expected.len());
    }
}

#[test]
fn a_wrong_line_is_reported_with_its_number_and_what_is_allowed() {
    let wrong = [
        ("blkparse", "8,0 nothing", "is no event (allowed: DEVICE CPU"),
        ("fio", "5 /dev/sda erase 0 4096", "the action is `erase` (allowed: read, write"),
        ("fio", "5 /dev/sda read 0", "is no line of version 3 (allowed: TIME FILE ACTION"),
        ("fio", "x /dev/sda read 0 1", "the time is `x` (allowed: a whole number"),
        ("fio", "5 /dev/sda read 0 4294967296", "a request of 4294967296 bytes (allowed: up to 4294967295)"),
        ("strace", "1 1700000000.1 pread64(3</x>, \"", "is no call (allowed: NAME(ARGUMENTS) = RESULT"),
        ("msr", "128166372003061629,hm,0,Reed,1,2,3", "the operation is `Reed` (allowed: Read, Write)"),
        ("msr", "128166372003061629,hm,0,Read,1,2", "6 fields between commas (allowed: 7)"),
        ("alibaba", "419,W,-1,16384,1577808144360767", "the offset is `-1` (allowed: a whole number"),
        ("alibaba", "419,W,1,16384,99999999999999999999", "the timestamp is `99999999999999999999`"),
        ("tencent", "1538323200,106352960,64,2,1283", "the operation is `2` (allowed: 0, 1)"),
        ("spc", "0,20941264,8192,W", "4 fields between commas (allowed: 5 or more)"),
        ("spc", "0,36028797018963968,8192,W,1.0", "36028797018963968 sectors, which is too far"),
    ];
    for (name, line, why) in wrong {
        let (_, text, _) = EXAMPLES.iter().find(|example| example.0 == name).unwrap();
        // Behind the summary of blkparse nothing is looked at.
        let text = text.split("CPU3").next().unwrap();
        let refused = read(name, &[], &format!("{text}{line}\n")).unwrap_err();
        let number = format!("line {}: ", text.lines().count() + 1);
        assert!(refused.contains(&number) && refused.contains(why), "{name}: {refused}");
    }
}

#[test]
fn options_are_those_of_the_format() {
    let refused = |format: &str, options| read(format, options, "").unwrap_err();
    assert!(refused("msr", &[("event", "queue")]).contains("has no option `event` (allowed: none)"));
    assert!(refused("blkparse", &[("event", "x")]).contains("`x` (allowed: issue, queue, complete)"));
    assert!(refused("nothing", &[]).contains("(allowed: blkparse, fio, strace, msr, alibaba, tencent, spc)"));
}

#[test]
fn waits_of_version_2_add_up() {
    let text = "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 1000\nf read 512 512\nf wait 500 0\nf datasync\n";
    let found = read("fio", &[], text).unwrap();
    assert_eq!(found.iter().map(|request| request.0).collect::<Vec<_>>(), [0, 1000, 1500]);
    assert_eq!(
        read("fio", &[("unit", "ms")], "fio version 3 iolog\n0 f read 0 1\n2 f read 0 1").unwrap()[1].0,
        2000
    );
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let operation = (0..Operation::ALL.len()).prop_map(|at| Operation::ALL[at]);
    let entry = (0..10_000_000_i64, 0..1_u64 << 40, 1..1_u64 << 20, operation).prop_map(
        |(time_us, offset, bytes, op)| {
            let sync = op == Operation::Sync;
            let (offset, bytes) = if sync { (0, 0) } else { (offset, bytes) };
            Entry { time_us, offset, bytes, operation: op, latency_us: f32::NAN }
        },
    );
    proptest::collection::vec(entry, 0..50).prop_map(|mut entries| {
        entries.sort_by_key(|entry| entry.time_us);
        entries
    })
}

/// Bytes that are lines of a format, nearly.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<&str> = EXAMPLES.iter().flat_map(|(_, text, _)| text.split_inclusive('\n')).collect();
    let line = (0..lines.len(), 0_usize..80, any::<Option<u8>>()).prop_map(move |(at, place, byte)| {
        let mut line = lines[at].as_bytes().to_vec();
        let place = place.min(line.len() - 1);
        match byte {
            Some(byte) => line[place] = byte,
            None => line.truncate(place),
        }
        line
    });
    proptest::collection::vec(line, 0..20).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn what_is_written_for_fio_is_read_again(entries in entries()) {
        let mut text = Vec::new();
        fio::write_header(&mut text, &["/dev/x"]).unwrap();
        for entry in &entries {
            fio::write_request(&mut text, "/dev/x", entry).unwrap();
        }
        let found = read_bytes(Format::of("fio").unwrap(), &[], &text).unwrap();
        let first = entries.first().map_or(0, |entry| entry.time_us);
        let expected: Vec<Found> = entries
            .iter()
            .map(|e| (e.time_us - first, "/dev/x".to_owned(), e.offset, e.bytes as u32, e.operation.name(), None))
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(text in prop_oneof![nearly(), proptest::collection::vec(any::<u8>(), 0..400)]) {
        for format in FORMATS {
            if let Ok(found) = read_bytes(format, &[], &text) {
                let lines = text.split(|byte| *byte == b'\n').count();
                prop_assert!(found.len() <= lines);
                prop_assert!(found.is_sorted_by_key(|request| request.0));
            }
        }
    }
}
