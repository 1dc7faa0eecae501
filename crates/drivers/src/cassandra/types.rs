//! Values as the protocol has them (section 6 of the specification), and the types of columns and parameters.

mod encode;

use std::rc::Rc;

use super::wire::{Fields, garbage};
use crate::contract::cells;
use crate::contract::error::Error;
use crate::contract::rows::{Column, Columns, Rows};
use crate::contract::value::Value;

pub(super) use encode::encode;

/// How deep types may lie within each other.
const DEEPEST: usize = 16;
/// The day 1970-01-01 as a date has it.
const EPOCH_DAY: u32 = 1 << 31;

/// A type, by its number in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Type {
    /// A list, set, map, tuple, user type, duration or another that is read and written as its bytes.
    Custom = 0x00,
    Ascii = 0x01,
    Bigint = 0x02,
    Blob = 0x03,
    Boolean = 0x04,
    Counter = 0x05,
    Decimal = 0x06,
    Double = 0x07,
    Float = 0x08,
    Int = 0x09,
    Timestamp = 0x0B,
    Uuid = 0x0C,
    Varchar = 0x0D,
    Varint = 0x0E,
    Timeuuid = 0x0F,
    Inet = 0x10,
    Date = 0x11,
    Time = 0x12,
    Smallint = 0x13,
    Tinyint = 0x14,
}

use Type::{
    Ascii, Bigint, Blob, Boolean, Counter, Custom, Date, Decimal, Double, Float, Inet, Int, Smallint, Time,
    Timestamp, Timeuuid, Tinyint, Uuid, Varchar, Varint,
};

const SIMPLE: [Type; 19] = [
    Ascii, Bigint, Blob, Boolean, Counter, Decimal, Double, Float, Int, Timestamp, Uuid, Varchar, Varint,
    Timeuuid, Inet, Date, Time, Smallint, Tinyint,
];

impl Type {
    fn of(number: u32) -> Self {
        SIMPLE.into_iter().find(|one| *one as u32 == number).unwrap_or(Custom)
    }

    /// Its name in CQL.
    fn name(self) -> &'static str {
        match self {
            Custom => "with parts",
            Ascii => "ascii",
            Bigint => "bigint",
            Blob => "blob",
            Boolean => "boolean",
            Counter => "counter",
            Decimal => "decimal",
            Double => "double",
            Float => "float",
            Int => "int",
            Timestamp => "timestamp",
            Uuid => "uuid",
            Varchar => "text",
            Varint => "varint",
            Timeuuid => "timeuuid",
            Inet => "inet",
            Date => "date",
            Time => "time",
            Smallint => "smallint",
            Tinyint => "tinyint",
        }
    }

    /// Whether its cells are read when they arrive: their values have another form than the bytes.
    fn is_marked(self) -> bool {
        matches!(self, Decimal | Varint | Inet)
    }
}

/// Reads an `[option]`: a type. What it has within it is left out.
fn read_type(fields: &mut Fields<'_>, depth: usize) -> Result<Type, Error> {
    if depth > DEEPEST {
        return Err(garbage("types within types"));
    }
    let number = fields.u16()?;
    match number {
        0x00 => drop(fields.string()?),
        0x20 | 0x22 => drop(read_type(fields, depth + 1)?),
        0x21 => {
            read_type(fields, depth + 1)?;
            read_type(fields, depth + 1)?;
        }
        0x30 => {
            fields.string()?;
            fields.string()?;
            for _ in 0..fields.u16()? {
                fields.string()?;
                read_type(fields, depth + 1)?;
            }
        }
        0x31 => {
            for _ in 0..fields.u16()? {
                read_type(fields, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(Type::of(number.into()))
}

/// Reads the descriptions of columns or parameters (section 4.2.5.2), each as its name and type.
pub(super) fn read_specs<'a>(
    fields: &mut Fields<'a>,
    count: usize,
    has_one_table: bool,
    mut each: impl FnMut(&'a [u8], Type),
) -> Result<(), Error> {
    if has_one_table && count > 0 {
        fields.string()?;
        fields.string()?;
    }
    for _ in 0..count {
        if !has_one_table {
            fields.string()?;
            fields.string()?;
        }
        let name = fields.string()?;
        each(name, read_type(fields, 0)?);
    }
    Ok(())
}

/// Reads the descriptions of a result's columns.
pub(super) fn read_columns(
    fields: &mut Fields<'_>,
    count: usize,
    has_one_table: bool,
) -> Result<Rc<Columns>, Error> {
    let mut columns = Vec::new();
    read_specs(fields, count, has_one_table, |name, of| {
        columns.push(Column { name: String::from_utf8_lossy(name).into(), kind: of as u32 });
    })?;
    Ok(Rc::new(Columns { columns, decode, any_name: false }))
}

/// Takes a row of the columns from a body, and adds it to the newest result if its rows are given.
#[inline]
pub(super) fn take_row(
    columns: &Columns,
    fields: &mut Fields<'_>,
    rows: Option<&mut Rows>,
) -> Result<(), Error> {
    let before = fields.0;
    for _ in &columns.columns {
        fields.bytes()?;
    }
    let Some(rows) = rows else { return Ok(()) };
    let cells = &before[..before.len() - fields.0.len()];
    if !columns.columns.iter().any(|column| Type::of(column.kind).is_marked()) {
        rows.push_cells(cells);
        return Ok(());
    }
    rows.push_row();
    let mut cells = Fields(cells);
    for column in &columns.columns {
        match (cells.bytes()?, Type::of(column.kind)) {
            (Some(cell), of) if of.is_marked() => mark(of, cell, rows),
            (cell, _) => rows.push_cell(cell),
        }
    }
    Ok(())
}

/// Adds a cell whose value is not its bytes.
fn mark(of: Type, cell: &[u8], rows: &mut Rows) {
    let text;
    let value = match of {
        Varint => match whole(cell) {
            Some(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::Unsigned(number),
                _ => {
                    text = number.to_string();
                    Value::Numeric(&text)
                }
            },
            None => unread(cell),
        },
        Decimal => match cell
            .split_first_chunk()
            .map(|(scale, units)| (i32::from_be_bytes(*scale), whole(units)))
        {
            Some((scale, Some(units))) => match (i64::try_from(units), u8::try_from(scale)) {
                (Ok(units), Ok(scale @ 0..=18)) => Value::Decimal { units, scale },
                _ => {
                    text =
                        if scale == 0 { units.to_string() } else { format!("{units}E{}", -i64::from(scale)) };
                    Value::Numeric(&text)
                }
            },
            _ => unread(cell),
        },
        _ => {
            let four = <[u8; 4]>::try_from(cell).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
            let six = <[u8; 16]>::try_from(cell).map(|bytes| std::net::Ipv6Addr::from(bytes).to_string());
            match four.or(six) {
                Ok(address) => {
                    text = address;
                    Value::Text(text.as_bytes())
                }
                Err(_) => unread(cell),
            }
        }
    };
    cells::push(value, rows);
}

/// An empty value, which is not null but has no meaning either, or a number of more than 38 digits.
fn unread(cell: &[u8]) -> Value<'_> {
    if cell.is_empty() { Value::Null } else { Value::Bytes(cell) }
}

/// A whole number of up to 16 bytes, in two's complement.
fn whole(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let mut wide = [if first & 0x80 == 0 { 0 } else { 0xff }; 16];
    wide.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// Decodes a cell as [`take_row`] has kept it. An empty one is null where the type has no empty values of its own.
fn decode(kind: u32, cell: &[u8]) -> Value<'_> {
    fn fixed<const N: usize>(cell: &[u8]) -> Option<[u8; N]> {
        cell.try_into().ok()
    }
    let value = match Type::of(kind) {
        Ascii | Varchar => Some(Value::Text(cell)),
        Blob | Custom => Some(Value::Bytes(cell)),
        Bigint | Counter => fixed(cell).map(|bytes| Value::Int(i64::from_be_bytes(bytes))),
        Int => fixed(cell).map(|bytes| Value::Int(i32::from_be_bytes(bytes).into())),
        Smallint => fixed(cell).map(|bytes| Value::Int(i16::from_be_bytes(bytes).into())),
        Tinyint => fixed(cell).map(|bytes| Value::Int(i8::from_be_bytes(bytes).into())),
        Boolean => fixed(cell).map(|byte: [u8; 1]| Value::Bool(byte != [0])),
        Double => fixed(cell).map(|bytes| Value::Float(f64::from_be_bytes(bytes))),
        Float => fixed(cell).map(|bytes| Value::Float(f32::from_be_bytes(bytes).into())),
        Timestamp => {
            fixed(cell).map(|bytes| Value::Timestamp(i64::from_be_bytes(bytes).saturating_mul(1000)))
        }
        Time => fixed(cell).map(|bytes| Value::Time(i64::from_be_bytes(bytes) / 1000)),
        Date => {
            fixed(cell).map(|bytes| Value::Date(u32::from_be_bytes(bytes).wrapping_sub(EPOCH_DAY) as i32))
        }
        Uuid | Timeuuid => fixed(cell).map(Value::Uuid),
        Decimal | Varint | Inet => Some(cells::decode(kind, cell)),
    };
    value.unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a server gives back of a value of a type, as its bytes or null.
    fn back(of: Type, cell: &[u8]) -> String {
        let (mut body, mut rows) = (Vec::new(), Rows::default());
        super::super::wire::put_long(&mut body, cell);
        let columns = vec![Column { name: "c".into(), kind: of as u32 }];
        let columns = Rc::new(Columns { columns, decode, any_name: false });
        let result = rows.begin(&columns);
        take_row(&columns, &mut Fields(&body), Some(&mut rows)).unwrap();
        format!("{:?}", rows.value(result, 0, 0).unwrap())
    }

    fn sent(of: Type, value: Value<'_>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        encode(of, value, &mut out).map(|()| out)
    }

    #[test]
    fn values_come_back_as_they_were_sent() {
        for (of, value) in [
            (Varchar, Value::Text("é".as_bytes())),
            (Bigint, Value::Int(i64::MIN)),
            (Counter, Value::Int(-1)),
            (Int, Value::Int(i32::MAX.into())),
            (Smallint, Value::Int(-32768)),
            (Tinyint, Value::Int(127)),
            (Varint, Value::Int(-129)),
            (Varint, Value::Unsigned(u64::MAX)),
            (Varint, Value::Numeric("-170141183460469231731687303715884105728")),
            (Decimal, Value::Decimal { units: -1250, scale: 2 }),
            (Decimal, Value::Numeric("17014118346046923173168730371588410572E-3")),
            (Boolean, Value::Bool(true)),
            (Double, Value::Float(0.1)),
            (Float, Value::Float(0.5)),
            (Blob, Value::Bytes(&[0, 255])),
            (Uuid, Value::Uuid([9; 16])),
            (Date, Value::Date(-1)),
            (Timestamp, Value::Timestamp(-1_001_000)),
            (Time, Value::Time(86_399_999_999)),
            (Inet, Value::Text(b"::1")),
            (Inet, Value::Text(b"127.0.0.1")),
            (Custom, Value::Bytes(b"\0\0\0\0")),
        ] {
            let bytes = sent(of, value).unwrap();
            assert_eq!(back(of, &bytes[4..]), format!("{value:?}"), "{}", of.name());
        }
    }

    #[test]
    fn values_are_converted_where_they_fit() {
        for (of, value, expected) in [
            (Varchar, Value::Int(-7), "Text([45, 55])"),
            (Int, Value::Float(3.0), "Int(3)"),
            (Int, Value::Text(b"-3"), "Int(-3)"),
            (Double, Value::Decimal { units: 5, scale: 1 }, "Float(0.5)"),
            (Decimal, Value::Float(0.1), "Decimal { units: 1, scale: 1 }"),
            (Decimal, Value::Int(7), "Decimal { units: 7, scale: 0 }"),
            (Decimal, Value::Text(b"-12.50"), "Decimal { units: -1250, scale: 2 }"),
            (Timestamp, Value::Text(b"1970-01-01 00:00:01"), "Timestamp(1000000)"),
            (Timestamp, Value::Timestamp(1999), "Timestamp(1000)"),
            (Date, Value::Text(b"1970-01-02"), "Date(1)"),
            (Time, Value::Text(b"00:00:01"), "Time(1000000)"),
            (
                Uuid,
                Value::Text(b"09090909-0909-0909-0909-090909090909"),
                "Uuid([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])",
            ),
            (Blob, Value::Text(b"a"), "Bytes([97])"),
        ] {
            assert_eq!(back(of, &sent(of, value).unwrap()[4..]), expected, "{} {value:?}", of.name());
        }
        assert_eq!(sent(Int, Value::Null).unwrap(), [255; 4]);
        for (of, value, told) in [
            (Int, Value::Int(1 << 31), "2147483648 does not fit the type int"),
            (Tinyint, Value::Float(0.5), "0.5 does not fit the type tinyint"),
            (Boolean, Value::Int(1), "1 does not fit the type boolean"),
            (Time, Value::Time(-1), "-1 does not fit the type time"),
            (Inet, Value::Text(b"h"), "h does not fit the type inet"),
            (Uuid, Value::Text(b"9"), "9 does not fit the type uuid"),
            (Bigint, Value::Unsigned(u64::MAX), "18446744073709551615 does not fit the type bigint"),
        ] {
            assert_eq!(sent(of, value).unwrap_err(), told);
        }
    }

    #[test]
    fn what_has_no_meaning_is_null_or_bytes() {
        assert_eq!(back(Int, b""), "Null");
        assert_eq!(back(Varint, b""), "Null");
        assert_eq!(back(Decimal, b""), "Null");
        assert_eq!(back(Varint, &[1; 17]), format!("Bytes({:?})", [1; 17]));
        assert_eq!(back(Inet, b"abc"), "Bytes([97, 98, 99])");
    }

    #[test]
    fn types_within_types_are_left_out() {
        // map<int, frozen<tuple<text>>>, then an int.
        let bytes = b"\0\x02ks\0\x01t\0\x01a\0\x21\0\x09\0\x31\0\x01\0\x0d\0\x01b\0\x09";
        let columns = read_columns(&mut Fields(bytes), 2, true).unwrap();
        let of: Vec<Type> = columns.columns.iter().map(|column| Type::of(column.kind)).collect();
        assert_eq!(of, [Custom, Int]);
        let deep = [&b"\0\x01a"[..], &b"\0\x20".repeat(1000)].concat();
        assert!(read_columns(&mut Fields(&[b"\0\0\0\0", &deep[..]].concat()), 1, true).is_err());
    }

    proptest! {
        #[test]
        fn whole_numbers_come_back(number in any::<i128>(), bits in 0..127_u32) {
            let text = (number >> bits).to_string();
            let bytes = sent(Varint, Value::Text(text.as_bytes())).unwrap();
            prop_assert_eq!(whole(&bytes[4..]).unwrap().to_string(), text);
            let is_short = bytes.len() == 5 || !matches!((bytes[4], bytes[5] >> 7), (0, 0) | (0xff, 1));
            prop_assert!(is_short, "{:?}", bytes);
        }

        #[test]
        fn no_cell_breaks_it(number in 0..21_u32, cell in prop::collection::vec(any::<u8>(), 0..40)) {
            back(Type::of(number), &cell);
        }
    }
}
