//! What drivers without a database give for rows: the parameters of the statement, and 1 under any other name.

use std::rc::Rc;

use crate::contract::added::{Added, Found, Places};
use crate::contract::cells;
use crate::contract::driver::Reply;
use crate::contract::rows::{Column, Columns, ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::Params;

/// The results of a connection's statements, each with the statement's parameters as its columns.
pub(crate) struct Echo {
    columns: Vec<Rc<Columns>>,
    added: Places,
    /// The statements whose replies are kept, until they are answered.
    sent: Vec<(usize, Params)>,
}

impl Echo {
    pub(crate) fn new(statements: &[Statement]) -> Self {
        let columns = statements.iter().map(columns).collect();
        Self { columns, added: Places::new(statements.len()), sent: Vec::new() }
    }

    /// Takes a statement to the others. Where the connection is `idle`, no command is queued.
    pub(crate) fn learn(&mut self, statement: &Rc<Statement>, idle: bool) -> Added {
        match self.added.find(statement, idle) {
            Found::Known(place) => Added::Ready(place),
            Found::New(place) => {
                if place == self.columns.len() {
                    self.columns.push(columns(statement));
                } else {
                    self.columns[place] = columns(statement);
                }
                Added::Ready(place)
            }
            Found::Full => Added::Full,
        }
    }

    /// Remembers a statement whose reply is to be kept.
    pub(crate) fn send(&mut self, statement: usize, params: &Params) {
        self.sent.push((statement, params.clone()));
    }

    /// Forgets what was sent: it has failed.
    pub(crate) fn forget(&mut self) {
        self.sent.clear();
    }

    /// Answers what was sent.
    pub(crate) fn answer(&mut self, rows: &mut Rows) {
        for (statement, params) in std::mem::take(&mut self.sent) {
            let result = self.add(statement, &params, rows);
            rows.keep(Reply { affected: 1, result, ..Reply::default() });
        }
    }

    /// Adds a result with one row, which holds the parameters.
    pub(crate) fn add(&self, statement: usize, params: &Params, rows: &mut Rows) -> Option<ResultIndex> {
        self.add_rows(statement, [params], rows)
    }

    /// Adds a result with any number of rows.
    pub(crate) fn add_rows<'a>(
        &self,
        statement: usize,
        added: impl IntoIterator<Item = &'a Params>,
        rows: &mut Rows,
    ) -> Option<ResultIndex> {
        let result = rows.begin(self.columns.get(statement)?);
        for cells in added {
            rows.push_row();
            for value in cells.iter() {
                cells::push(value, rows);
            }
        }
        Some(result)
    }
}

fn columns(statement: &Statement) -> Rc<Columns> {
    let columns = statement.params().iter().map(|name| Column { name: name.as_str().into(), kind: 0 });
    Rc::new(Columns { columns: columns.collect(), decode: cells::decode, any_name: true })
}
