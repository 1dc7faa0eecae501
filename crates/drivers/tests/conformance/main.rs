//! What every driver keeps to, present and future: one suite over all of them.
//!
//! A new driver is a fixture in `fixtures` and a line in the table below. PostgreSQL is a real server, which the
//! suite starts and stops itself; where it is not installed its members say so and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "../support/mod.rs"]
mod support;

mod added;
mod admin;
mod aws;
mod cassandra;
mod client;
mod connecting;
mod counting;
mod errors;
mod excess;
mod fixtures;
mod greetings;
mod isolation;
mod keyed;
mod kills;
mod mongodb;
mod mysql;
mod notices;
mod results;
mod sqlite_files;
mod sqlite_locks;
mod timeouts;
mod transactions;
mod types;

use nephoscope_drivers::{ErrorClass, Settings, open, schemes};

use fixtures::{Fixture, unique};

/// Makes a test of each check of a theme, for one driver.
macro_rules! tests {
    ($fixture:path; $($theme:ident: $($check:ident)*;)*) => {
        $(mod $theme {
            $(#[test]
            fn $check() {
                if let Some(fixture) = $fixture() {
                    crate::client::wait_by(crate::fixtures::Fixture::io(&*fixture));
                    crate::$theme::$check(&*fixture);
                }
            })*
        })*
    };
}

/// What holds for any driver.
macro_rules! every_driver {
    ($fixture:path) => {
        tests! { $fixture;
            results:
                results_have_as_many_rows_as_there_are
                wide_rows_come_whole
                large_values_come_whole
                results_are_kept_side_by_side
                the_key_of_an_inserted_row_is_told_where_it_can_be
                rows_that_are_not_wanted_are_not_kept
                replies_that_are_wanted_are_kept_whatever_follows_them
                large_statements_and_large_results_may_pass_each_other;
            transactions:
                the_state_follows_the_commands
                a_transaction_may_leave_in_one_flush
                an_error_in_one_flush_spoils_the_whole_transaction
                a_rollback_in_the_same_flush_does_not_hide_an_error;
            errors:
                every_class_is_provoked_or_the_fixture_says_why
                a_violation_of_any_constraint_is_told_as_one;
            kills:
                a_connection_killed_in_mid_transaction_is_lost_with_its_effects
                a_connection_killed_at_rest_is_lost_at_its_next_use;
            timeouts:
                a_wait_that_was_given_up_can_be_taken_up_again
                a_cancelled_statement_leaves_a_usable_connection;
            counting:
                nothing_is_lost_or_counted_twice;
            admin:
                a_bulk_load_counts_its_rows
                an_error_of_the_source_ends_a_bulk_load;
            added:
                a_text_is_run_as_it_is
                an_added_statement_is_as_good_as_one_that_was_there
                any_number_of_statements_is_added
                what_is_added_may_leave_with_others
                a_wrong_one_is_an_error_whenever_it_is_added
                what_stands_behind_an_error_is_asked_for_again
                lists_may_have_any_length;
            isolation:
                a_transaction_begins_in_a_level;
        }
    };
}

/// What holds for a driver with PostgreSQL's types, and where an error spoils the transaction.
macro_rules! every_strict {
    ($fixture:path) => {
        tests! { $fixture;
            types:
                values_come_back_as_they_were_sent
                null_of_every_type_comes_back
                values_that_do_not_fit_are_refused_before_anything_is_sent
                random_values_come_back;
            transactions:
                a_failed_transaction_can_only_be_rolled_back
                the_commit_of_a_failed_transaction_is_an_error;
        }
    };
}

/// What holds for MySQL and MariaDB besides.
macro_rules! every_mysql {
    ($fixture:path) => {
        tests! { $fixture;
            mysql:
                values_come_back_as_they_were_sent
                null_of_every_type_comes_back
                columns_of_every_type_are_read
                text_is_safe_whatever_the_sql_mode_says
                values_that_mysql_does_not_have_are_refused
                a_transaction_goes_on_after_an_error
                a_deadlock_ends_the_transaction
                statements_behind_a_deadlock_are_not_run
                a_failed_statement_is_not_followed_by_those_that_commit_themselves
                a_result_may_be_longer_than_a_packet
                every_result_of_a_procedure_is_told
                affected_counts_what_was_found
                columns_that_change_are_read_anew
                several_statements_give_the_last_result
                every_type_is_loaded
                a_row_the_server_refuses_leaves_the_table_unchanged
                a_load_goes_on_without_local_files
                a_statement_has_no_second_one
                users_of_every_plugin_are_let_in
                the_facts_tell_version_and_settings
                the_probes_statements_are_understood;
            isolation:
                a_level_decides_what_is_seen;
        }
    };
}

/// What holds for PostgreSQL besides.
macro_rules! every_postgres {
    ($fixture:path) => {
        tests! { $fixture;
            types:
                values_are_converted_where_they_fit
                columns_without_a_form_of_their_own_come_as_text
                random_dates_and_times_come_back;
            results:
                affected_counts_what_was_touched_or_returned
                statements_without_columns_have_no_result
                the_columns_of_a_result_are_named;
            transactions:
                a_constraint_that_fails_at_commit_is_the_commits_error
                a_statement_outside_a_transaction_that_fails_at_its_end_has_failed
                stray_commands_do_no_harm;
            errors:
                serializable_transactions_that_depend_on_each_other_fail
                lock_nowait_is_a_lock_timeout
                a_session_that_may_only_read_is_read_only
                a_duplicate_key_is_named_and_bad_sql_is_another_error
                an_idle_transaction_is_ended_by_the_server;
            kills:
                a_connection_killed_while_it_waits_is_lost;
            isolation:
                a_level_holds_for_one_transaction;
            notices:
                notices_before_between_and_after_rows_do_no_harm
                parameters_that_change_in_mid_stream_do_no_harm
                notifications_do_no_harm;
            admin:
                several_statements_give_the_last_result
                an_error_is_told_and_the_connection_goes_on
                every_type_is_loaded
                columns_without_a_binary_form_are_loaded_as_text
                numbers_are_loaded_exactly
                values_that_do_not_fit_name_their_column
                a_row_the_server_refuses_leaves_the_table_unchanged
                an_error_ends_a_long_load_early
                copy_is_refused_as_a_query
                the_facts_tell_version_and_settings;
            connecting:
                a_missing_database_and_a_wrong_statement_are_named
                statements_that_run_first_are_run_in_order
                the_time_limit_holds_for_what_is_run_first
                a_unix_socket_is_as_good_as_tcp;
        }
    };
}

/// What holds for SQLite besides.
macro_rules! every_sqlite {
    ($fixture:path) => {
        tests! { $fixture;
            sqlite_locks:
                a_wait_for_the_write_lock_ends_with_the_transaction_that_holds_it
                a_session_that_waits_leaves_its_thread_to_others
                who_waits_long_tries_seldom
                a_lock_is_waited_for_up_to_the_time_limit
                a_wait_for_a_lock_can_be_cancelled
                a_commit_that_readers_hold_up_waits_for_them
                a_reader_that_cannot_become_a_writer_is_a_serialization_failure
                transactions_that_begin_with_the_lock_do_not_fail
                sessions_of_a_thread_take_turns
                two_threads_lose_nothing
                a_long_statement_ends_at_its_time_limit
                a_connection_that_is_dropped_leaves_no_lock;
            sqlite_files:
                values_are_kept_in_their_storage_classes
                values_of_columns_come_back
                affected_counts_what_was_touched_or_returned
                a_file_that_is_read_only_takes_no_writes
                a_file_that_is_no_database_is_named
                options_are_set_on_every_connection
                a_statement_follows_the_schema
                errors_have_the_names_of_sqlite
                an_inserted_key_is_that_of_its_own_statement
                a_constraint_that_fails_at_commit_is_the_commits_error
                rows_without_an_end_fail_and_the_session_goes_on
                statements_that_run_first_are_run_in_order
                several_statements_give_the_last_result
                a_failed_load_leaves_the_table_unchanged
                every_value_is_loaded
                the_facts_tell_version_and_settings
                set_up_waits_for_a_lock_and_can_be_interrupted
                what_probes_say_is_understood;
        }
    };
}

/// What holds for a driver without SQL.
macro_rules! every_keyed {
    ($fixture:path) => {
        tests! { $fixture;
            keyed:
                a_row_is_what_was_written
                a_scan_has_the_order_of_keys
                commands_of_one_flush_are_answered_in_their_order
                added_statements_are_as_good_as_others
                loaded_rows_are_there_for_the_verbs;
        }
    };
}

/// What holds for Redis besides.
macro_rules! every_redis {
    ($fixture:path) => {
        tests! { $fixture;
            keyed:
                errors_leave_a_usable_connection
                a_killed_connection_is_lost;
        }
    };
}

/// What holds for the systems behind HTTP besides.
macro_rules! every_aws {
    ($fixture:path) => {
        tests! { $fixture;
            aws:
                errors_leave_a_usable_connection
                a_connection_that_the_server_has_closed_is_made_anew
                what_was_sent_and_not_answered_may_have_been_done;
        }
    };
}

/// What holds for Cassandra besides.
macro_rules! every_cassandra {
    ($fixture:path) => {
        tests! { $fixture;
            cassandra:
                values_of_every_type_come_back
                cql_is_run_beside_verbs
                errors_have_their_class_and_leave_a_usable_connection
                a_statement_that_the_node_has_forgotten_is_prepared_anew
                a_level_says_how_many_replicas_have_to_answer
                a_load_names_what_does_not_fit;
        }
    };
}

/// What holds for `MongoDB` besides.
macro_rules! every_mongodb {
    ($fixture:path) => {
        tests! { $fixture;
            mongodb:
                values_of_every_type_come_back
                errors_have_their_class_and_leave_a_usable_connection
                a_cursor_is_read_to_its_end
                what_a_level_asks_for_is_taken;
        }
    };
}

/// The registered drivers: a name that begins with the driver's, its fixture, and the checks that it has to pass.
macro_rules! drivers {
    ($($name:ident: $fixture:path => $($checks:ident)*;)*) => {
        const REGISTERED: &[&str] = &[$(stringify!($name)),*];
        $(mod $name {
            $(mod $checks {
                $checks! { $fixture }
            })*
        })*
    };
}

drivers! {
    noop: crate::fixtures::noop::fixture => every_driver every_strict;
    sim: crate::fixtures::sim::fixture => every_driver every_strict;
    sqlite_simple: crate::fixtures::sqlite::simple => every_driver every_strict every_sqlite;
    sqlite_extended: crate::fixtures::sqlite::extended => every_driver every_strict every_sqlite;
    sqlite_prepared: crate::fixtures::sqlite::prepared => every_driver every_strict every_sqlite;
    sqlite_rollback_journal: crate::fixtures::sqlite::rollback_journal => every_driver every_strict every_sqlite;
    mysql_simple: crate::fixtures::mysql::simple => every_driver every_mysql;
    mysql_extended: crate::fixtures::mysql::extended => every_driver every_mysql;
    mysql_prepared: crate::fixtures::mysql::prepared => every_driver every_mysql;
    mysql_pieces: crate::fixtures::mysql::pieces => every_driver every_mysql;
    mysql_tls: crate::fixtures::mysql::tls => every_driver every_mysql;
    mysql_uring: crate::fixtures::mysql::uring => every_driver every_mysql;
    postgres_simple: crate::fixtures::postgres::simple => every_driver every_strict every_postgres;
    postgres_extended: crate::fixtures::postgres::extended => every_driver every_strict every_postgres;
    postgres_prepared: crate::fixtures::postgres::prepared => every_driver every_strict every_postgres;
    postgres_pieces: crate::fixtures::postgres::pieces => every_driver every_strict every_postgres;
    postgres_tls: crate::fixtures::postgres::tls => every_driver every_strict every_postgres;
    postgres_uring: crate::fixtures::postgres::uring => every_driver every_strict every_postgres;
    postgres_uring_pieces: crate::fixtures::postgres::pieces_uring => every_driver every_strict every_postgres;
    postgres_uring_tls: crate::fixtures::postgres::tls_uring => every_driver every_strict every_postgres;
    redis_plain: crate::fixtures::redis::plain => every_keyed every_redis;
    redis_socket: crate::fixtures::redis::socket => every_keyed every_redis;
    redis_pieces: crate::fixtures::redis::pieces => every_keyed every_redis;
    redis_uring: crate::fixtures::redis::uring => every_keyed every_redis;
    redis_tls: crate::fixtures::redis::tls => every_keyed every_redis;
    dynamodb_plain: crate::fixtures::aws::dynamodb => every_keyed every_aws;
    dynamodb_strong: crate::fixtures::aws::dynamodb_strong => every_keyed;
    dynamodb_pieces: crate::fixtures::aws::dynamodb_pieces => every_keyed every_aws;
    dynamodb_uring: crate::fixtures::aws::dynamodb_uring => every_keyed;
    s3_plain: crate::fixtures::aws::s3 => every_keyed every_aws;
    s3_pieces: crate::fixtures::aws::s3_pieces => every_keyed every_aws;
    s3_uring: crate::fixtures::aws::s3_uring => every_keyed;
    simpledb_plain: crate::fixtures::aws::simpledb => every_keyed every_aws;
    simpledb_strong: crate::fixtures::aws::simpledb_strong => every_keyed;
    simpledb_pieces: crate::fixtures::aws::simpledb_pieces => every_keyed every_aws;
    hbase_plain: crate::fixtures::aws::hbase => every_keyed every_aws;
    hbase_pieces: crate::fixtures::aws::hbase_pieces => every_keyed every_aws;
    cassandra_plain: crate::fixtures::cassandra::plain => every_keyed every_cassandra;
    cassandra_pieces: crate::fixtures::cassandra::pieces => every_keyed every_cassandra;
    cassandra_older: crate::fixtures::cassandra::older => every_keyed every_cassandra;
    cassandra_routed: crate::fixtures::cassandra::routed => every_keyed every_cassandra;
    cassandra_uring: crate::fixtures::cassandra::uring => every_keyed;
    mongodb_plain: crate::fixtures::mongodb::plain => every_keyed every_mongodb;
    mongodb_socket: crate::fixtures::mongodb::socket => every_keyed;
    mongodb_pieces: crate::fixtures::mongodb::pieces => every_keyed every_mongodb;
    mongodb_uring: crate::fixtures::mongodb::uring => every_keyed;
    mongodb_tls: crate::fixtures::mongodb::tls => every_keyed every_mongodb;
}

#[test]
fn every_scheme_is_registered() {
    for (scheme, _) in schemes() {
        let rest = match scheme {
            "postgresql" | "mysql" => "somebody@",
            "sqlite" => "/never/opened.db",
            "dynamodb" | "simpledb" => "id:secret@us-east-1",
            "s3" => "id:secret@bucket?region=us-east-1",
            _ => "",
        };
        let driver = open(&format!("{scheme}://{rest}"), &Settings::default()).unwrap();
        let registered = REGISTERED.iter().any(|name| name.starts_with(driver.name()));
        assert!(registered, "the driver of {scheme}:// has no line in the table of the conformance suite");
    }
}

/// What a fixture says that its driver cannot do.
fn left_out(fixture: &dyn Fixture) -> Vec<&'static str> {
    let name = unique("left_out");
    let driver = fixture.open(&name);
    let abilities = [
        ("kill", fixture.kill(&*driver, &name).is_err()),
        ("faulty", fixture.faulty().is_err()),
        ("slow", fixture.slow().is_err()),
        ("ledger", fixture.ledger(&name).is_err()),
    ];
    let classes = ErrorClass::ALL.map(|class| (class.name(), fixture.provoke(class).is_err()));
    abilities.iter().chain(&classes).filter(|(_, is_left_out)| *is_left_out).map(|(what, _)| *what).collect()
}

/// Whatever a driver is excused from is listed here, so that a check cannot go missing by a fixture's excuse.
#[test]
fn nothing_is_left_out_but_what_a_driver_cannot_have() {
    let noop = left_out(&*fixtures::noop::fixture().unwrap());
    let classes = ErrorClass::ALL.map(ErrorClass::name);
    assert_eq!(noop, [&["kill", "faulty", "slow", "ledger"][..], &classes].concat());
    assert!(left_out(&*fixtures::sim::fixture().unwrap()).is_empty());
    if let Some(mysql) = fixtures::mysql::prepared() {
        assert_eq!(left_out(&*mysql), ["shutting_down"], "see why in the fixture");
    }
    let sqlite = left_out(&*fixtures::sqlite::prepared().unwrap());
    assert_eq!(sqlite, ["kill", "slow", "deadlock", "shutting_down", "throttled"]);
    if let Some(postgres) = fixtures::postgres::prepared() {
        assert!(left_out(&*postgres).is_empty());
    }
}
