"""moto's server, and what its SimpleDB leaves out: Select, DeleteAttributes and BatchPutAttributes, after AWS's manual.

``python tests/tools/moto_with_simpledb.py -H 127.0.0.1 -p PORT``, in moto's own environment.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult, EmptyResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.sdb.exceptions import InvalidParameterError
from moto.sdb.responses import SimpleDBResponse
from moto.server import main

if TYPE_CHECKING:
    from moto.sdb.models import FakeDomain, FakeItem

_PAGE = 30
"""How many items an answer has, so that a long one comes in several."""
_NAME = r"`((?:[^`]|``)+)`"
_SELECT = re.compile(
    rf"select (?P<fields>itemName\(\)|{_NAME}(?:, {_NAME})*) from {_NAME} where itemName\(\) "
    r"(?:is not null|>= '(?P<start>(?:[^']|'')*)') order by itemName\(\) limit (?P<limit>\d+)"
)
"""The expressions that nephoscope sends, and no others."""


def _domain(response: SimpleDBResponse, name: str) -> FakeDomain:
    return response.sdb_backend._get_domain(name)


def batch_put_attributes(response: SimpleDBResponse) -> ActionResult:
    domain = _domain(response, response._get_param("DomainName"))
    for item in response._get_param("Items"):
        domain.put(item["Name"], item["Attributes"])
    return EmptyResult()


def delete_attributes(response: SimpleDBResponse) -> ActionResult:
    domain = _domain(response, response._get_param("DomainName"))
    domain.items.pop(response._get_param("ItemName"), None)
    return EmptyResult()


def select(response: SimpleDBResponse) -> ActionResult:
    found = _SELECT.fullmatch(response._get_param("SelectExpression"))
    if found is None:
        raise InvalidParameterError("The specified query expression syntax is not valid.")
    names = [name.replace("``", "`") for name in re.findall(_NAME, found[0].partition(" where ")[0])]
    fields, table = names[:-1], names[-1]
    start = (found["start"] or "").replace("''", "'").encode()
    after = int(response._get_param("NextToken") or 0)
    items = _domain(response, table).items
    keys = sorted(key for key, item in items.items() if item.attributes and key.encode() >= start)
    last = min(int(found["limit"]), len(keys))
    end = min(after + _PAGE, last)
    result: dict[str, Any] = {"Items": [_told(key, items[key], fields) for key in keys[after:end]]}
    if end < last:
        result["NextToken"] = str(end)
    return ActionResult(result)


def _told(key: str, item: FakeItem, fields: list[str]) -> dict[str, Any]:
    return {"Name": key, "Attributes": item.get_attributes(fields) if fields else []}


_service_of = DomainDispatcherApplication.get_service_from_body


def get_service_from_body(application: Any, body: str, _environ: object) -> tuple[str | None, str | None]:
    """Tell the service; moto takes the region from the header by which AWS's own clients name themselves."""
    service, region = _service_of(application, body, {"HTTP_USER_AGENT": "region/us-east-1"})
    return service, region


if __name__ == "__main__":
    DomainDispatcherApplication.get_service_from_body = get_service_from_body
    for added in (batch_put_attributes, delete_attributes, select):
        setattr(SimpleDBResponse, added.__name__, added)
    main(sys.argv[1:])
