"""Colours can be read, and told apart by every kind of colour vision."""

from __future__ import annotations

import itertools
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from nephoscope.report.kit.charts import CATEGORIES

Vector = np.ndarray[Any, np.dtype[np.float64]]

THEMES = ("light", "dark")
TEXT = ("ink", "ink-2", "ink-3", "link", "muted", "ok", "note", "warning", "problem")

# Machado, Oliveira and Fernandes (2009), severity 1.
VISION = {
    "all": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def palette(theme: str) -> dict[str, str]:
    css = files("nephoscope.report").joinpath("static", f"{theme}.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", css))


def linear(color: str) -> Vector:
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.asarray(np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4))


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def lab(rgb: Vector) -> Vector:
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = matrix @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", THEMES)
def test_both_palettes_name_the_same_roles(theme: str) -> None:
    assert palette(theme).keys() == palette("light").keys()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", TEXT)
def test_text_has_the_contrast_that_wcag_aa_asks_for(theme: str, role: str) -> None:
    colors = palette(theme)
    grounds = ["paper", "surface"] if role != "muted" else ["paper"]
    if f"{role}-wash" in colors:
        grounds.append(f"{role}-wash")
    for ground in grounds:
        assert contrast(colors[role], colors[ground]) >= 4.5 if role != "muted" else 3.0, (role, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_lines_have_the_contrast_that_wcag_aa_asks_for_graphics(theme: str) -> None:
    colors = palette(theme)
    for role in [*(f"c{i}" for i in range(CATEGORIES)), "q1", "q2", "q3", "axis"]:
        assert contrast(colors[role], colors["paper"]) >= 3.0, role


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", VISION)
def test_categories_are_told_apart_by_every_kind_of_colour_vision(theme: str, vision: str) -> None:
    colors = palette(theme)
    seen = [lab(VISION[vision] @ linear(colors[f"c{i}"])) for i in range(CATEGORIES)]
    nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
    assert nearest > 11, nearest


@pytest.mark.parametrize("theme", THEMES)
def test_the_ramp_of_percentiles_is_ordered_by_lightness(theme: str) -> None:
    colors = palette(theme)
    steps = [contrast(colors[f"q{i}"], colors["paper"]) for i in range(4)]
    assert steps == sorted(steps)


@pytest.mark.parametrize("theme", THEMES)
def test_heat_deepens_step_by_step_and_a_difference_to_either_side(theme: str) -> None:
    colors = palette(theme)
    heat = [contrast(colors["paper"], colors[f"h{step}"]) for step in range(5)]
    assert all(later > earlier * 1.15 for earlier, later in itertools.pairwise(heat))
    assert heat[0] > 1.05, "a cell with little is told from an empty one"
    apart = [contrast(colors["d2"], colors[f"d{step}"]) for step in (0, 1, 2, 3, 4)]
    assert apart[0] > apart[1] * 1.5 > apart[2] * 1.8
    assert apart[4] > apart[3] * 1.5 > apart[2] * 1.8
    for vision in VISION.values():
        less, more = (lab(vision @ linear(colors[role])) for role in ("d0", "d4"))
        assert np.linalg.norm(less - more) > 30
