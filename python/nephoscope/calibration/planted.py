"""A provider around another one, whose actions plant something else at a known moment: evaluators run as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.systems.around import Around

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.settings.actions import Action
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.base import Done


class Planted(Around):
    """Does as the provider within, but for the actions that are given to it."""

    name: ClassVar[str] = "planted"
    summary: ClassVar[str] = "what calibration plants around another provider"

    def __init__(self, inner: Any, deeds: Mapping[Action, Callable[[Any], Done]]) -> None:  # noqa: ANN401
        """Take the provider within, which each deed is called with; touch nothing yet."""
        super().__init__(inner)
        self._deeds = deeds

    def actions(self) -> frozenset[Action]:
        """Tell what either can do."""
        return super().actions() | frozenset(self._deeds)

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Plant what stands for an action; others are the inner provider's."""
        if action in self._deeds:
            return self._deeds[action](self._inner)
        return super().act(action, node=node, resources=resources, settings=settings)
