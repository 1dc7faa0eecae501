//! The tables of the sales workload: customers, orders, and one to nineteen lines an order.

use nephoscope_datagen::{Children, ColumnSpec, Generator, Literal, TableSpec};

fn names(name: &str) -> String {
    name.to_owned()
}

/// The tables with so many customers, as many orders, and ten times as many order lines.
pub(crate) fn tables(customers: u64) -> Vec<TableSpec> {
    vec![customer(customers), orders(customers), orderline()]
}

fn after(column: &str) -> Generator {
    Generator::After { column: names(column), min_seconds: 0, max_seconds: 30 * 86_400 }
}

fn customer(rows: u64) -> TableSpec {
    let gender = || Some(names("c_gender"));
    let columns = vec![
        ColumnSpec::new("c_id", Generator::Serial { start: 1 }),
        ColumnSpec::new("c_name", Generator::Name { gender: gender() }),
        ColumnSpec::new("c_gender", Generator::Gender { female: names("F"), male: names("M") }),
        ColumnSpec::new("c_age", Generator::Integer { min: 18, max: 80 }),
        ColumnSpec::new("c_province", Generator::Province),
        ColumnSpec::new("c_city", Generator::City { province: Some(names("c_province")) }),
        ColumnSpec::new("c_credit", Generator::Decimal { min: 0, max: 1_000_000, scale: 2 }),
        ColumnSpec::new("c_created", Generator::Date { from: names("2018-01-01"), to: names("2023-12-31") }),
        ColumnSpec::new("c_updated", after("c_created")),
    ];
    TableSpec { name: names("customer"), rows: Some(rows), columns }
}

fn orders(rows: u64) -> TableSpec {
    let statuses = ["NEW", "PAID", "SHIPPED", "CANCELLED"].map(|status| Literal::Text(names(status)));
    let columns = vec![
        ColumnSpec::new("o_id", Generator::Serial { start: 1 }),
        ColumnSpec::new(
            "o_c_id",
            Generator::Reference { table: names("customer"), column: None, theta: 0.0 },
        ),
        ColumnSpec::new("o_date", Generator::Date { from: names("2022-01-01"), to: names("2024-12-31") }),
        ColumnSpec::new(
            "o_status",
            Generator::Choice { values: statuses.into(), weights: vec![2.0, 5.0, 12.0, 1.0] },
        ),
        ColumnSpec::new(
            "o_total",
            Generator::Total { table: names("orderline"), column: names("ol_amount") },
        ),
        ColumnSpec::new("o_updated", after("o_date")),
    ];
    TableSpec { name: names("orders"), rows: Some(rows), columns }
}

fn orderline() -> TableSpec {
    let parent = Generator::Parent {
        table: names("orders"),
        column: None,
        children: Children::Between { min: 1, max: 19 },
    };
    let updated = Generator::Timestamp { from: names("2022-01-01"), to: names("2024-12-31 23:59:59.999999") };
    let factors = ["ol_quantity", "ol_price"].map(names).into();
    let columns = vec![
        ColumnSpec::new("ol_id", Generator::Serial { start: 1 }),
        ColumnSpec::new("ol_o_id", parent),
        ColumnSpec::new("ol_product", Generator::Integer { min: 1, max: 100_000 }),
        ColumnSpec::new("ol_quantity", Generator::Integer { min: 1, max: 10 }),
        ColumnSpec::unstored("ol_price", Generator::Decimal { min: 99, max: 49_999, scale: 2 }),
        ColumnSpec::new("ol_amount", Generator::Product { columns: factors }),
        ColumnSpec::new("ol_updated", updated),
    ];
    TableSpec { name: names("orderline"), rows: None, columns }
}
