"""TPC-C's standard mix for pgbench: the statements of ``workloads/tpcc``, one by one, at one warehouse.

What pgbench cannot do is left as near as it comes: an order has ten lines, the mean; their items lie a tenth of all
items apart, so that they ascend as those of nephoscope do; who is found by last name has always the same one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LINES = 10
LAST_NAME = "BARBARBAR"
_STATEMENTS = Path(__file__).parent.parent / "workloads" / "tpcc" / "statements.sql"
_DISTRICT = r"\set d_id random(1, 10)"
_BY_ID = r"\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1"


def _statements() -> dict[str, str]:
    parts = _STATEMENTS.read_text().split("-- name:")[1:]
    return {
        name.strip(): sql.strip().rstrip(";") for name, _, sql in (part.partition("\n") for part in parts)
    }


class _Script:
    """A script, line by line."""

    def __init__(self, statements: Mapping[str, str]) -> None:
        self._statements = statements
        self.lines = [r"\set w_id 1"]

    def put(self, *lines: str) -> None:
        self.lines += lines

    def run(self, name: str, store: str = "", **named: str) -> None:
        """Run a statement; its parameters in ``named`` have other names here. ``store`` is ``gset`` or ``aset``."""
        sql = self._statements[name].split("\n\n", maxsplit=1)[0].rstrip(";")
        for parameter, variable in named.items():
            sql = sql.replace(f":{parameter}", f":{variable}")
        self.put(f"{sql} \\{store}" if store else f"{sql};")


def scripts(folder: Path) -> list[str]:
    """Write the scripts; give pgbench's arguments that run them by the shares of the standard mix."""
    statements = _statements()
    arguments = ["-D", f"last_name={LAST_NAME}", "--max-tries=10"]
    made: Mapping[str, tuple[int, Callable[[_Script], None]]] = {
        "new_order": (450, _new_order),
        "payment_by_id": (172, lambda script: _payment(script, by_name=False)),
        "payment_by_name": (258, lambda script: _payment(script, by_name=True)),
        "order_status_by_id": (16, lambda script: _order_status(script, by_name=False)),
        "order_status_by_name": (24, lambda script: _order_status(script, by_name=True)),
        "delivery": (40, _delivery),
        "stock_level": (40, _stock_level),
    }
    for name, (weight, write) in made.items():
        script = _Script(statements)
        write(script)
        file = folder / f"{name}.sql"
        file.write_text("\n".join(script.lines) + "\n")
        arguments += ["-f", f"{file}@{weight}"]
    return arguments


def _new_order(script: _Script) -> None:
    script.put(_DISTRICT, _BY_ID, rf"\set ol_cnt {LINES}", r"\set all_local 1", r"\set remote 0", "BEGIN;")
    script.run("count_order")
    script.run("counted_order", "gset")
    script.run("warehouse_tax")
    script.run("discount")
    script.run("new_order")
    script.run("not_delivered")
    share = 100_000 // LINES
    for number in range(1, LINES + 1):
        low, high = (number - 1) * share + 1, number * share
        script.put(
            rf"\set number {number}", rf"\set i_id random({low}, {high})", r"\set quantity random(1, 10)"
        )
        script.run("item", "gset")
        script.run("take_stock")
        script.run("stock", "gset")
        script.put(r"\set amount :quantity * :i_price")
        script.run("new_order_line", supply_w_id="w_id", dist_info="s_dist")
    script.put(r"\set rbk random(1, 100)", r"\if :rbk = 1", "ROLLBACK;", r"\else", "COMMIT;", r"\endif")


def _payment(script: _Script, *, by_name: bool) -> None:
    script.put(_DISTRICT, _BY_ID, r"\set amount random(100, 500000) / 100.0", "BEGIN;")
    script.run("pay_warehouse")
    script.run("warehouse", "gset")
    script.run("pay_district")
    script.run("district", "gset")
    if by_name:
        script.run("customers_called", "aset", c_last="last_name")
    script.run("pay_customer")
    script.run("customer", "gset")
    script.put(r"\set bad random(1, 10)", r"\if :bad = 1")
    script.run("record_payment", c_data="c_phone")
    script.put(r"\endif")
    script.run("new_history", c_d_id="d_id", c_w_id="w_id", data="w_name")
    script.put("COMMIT;")


def _order_status(script: _Script, *, by_name: bool) -> None:
    script.put(_DISTRICT, _BY_ID, "BEGIN;")
    if by_name:
        script.run("customers_called", "aset", c_last="last_name")
    script.run("balance")
    script.run("last_order", "gset")
    script.run("lines_of_order")
    script.put("COMMIT;")


def _delivery(script: _Script) -> None:
    script.put(r"\set carrier random(1, 10)", "BEGIN;")
    for district in range(1, 11):
        script.put(rf"\set d_id {district}")
        script.run("oldest_order", "gset")
        script.run("delivered", o_id="no_o_id")
        script.run("set_carrier", o_id="no_o_id")
        script.run("deliver_lines", o_id="no_o_id")
        script.run("customer_of_order", "gset", o_id="no_o_id")
        script.run("amount_of_order", "gset", o_id="no_o_id")
        script.run("charge", c_id="o_c_id")
    script.put("COMMIT;")


def _stock_level(script: _Script) -> None:
    script.put(_DISTRICT, r"\set threshold random(10, 20)", "BEGIN;")
    script.run("next_order_id", "gset")
    script.put(r"\set first :d_next_o_id - 20")
    script.run("low_stock", next="d_next_o_id")
    script.put("COMMIT;")
