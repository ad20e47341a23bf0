"""JSON as RFC 8259 has it: contract section 1."""

from __future__ import annotations

import json
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog_events.jsontext import Json, NotJson, NotStorable, dumps, from_python, is_too_deep, loads

HUGE = 10**30
"""A number that only the slow path can read and write."""

texts = st.text(st.characters(exclude_categories=["Cs"]))
values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@given(values)
def test_reads_what_python_writes(value: Json) -> None:
    assert loads(json.dumps(value).encode()) == value
    assert loads(json.dumps(value, ensure_ascii=False, indent=3).encode()) == value


@given(values)
def test_python_reads_what_is_written(value: Json) -> None:
    assert json.loads(dumps(value)) == value


@given(values)
def test_the_slow_path_reads_what_the_fast_one_does(value: Json) -> None:
    written = json.dumps([HUGE, value], indent=1).encode()

    assert loads(written) == [HUGE, value]


@given(values)
def test_the_slow_path_writes_what_the_fast_one_does(value: Json) -> None:
    assert dumps([HUGE, value]) == b"[%d,%s]" % (HUGE, dumps(value))


@given(values)
def test_a_python_value_is_written_compactly(value: Json) -> None:
    assert json.loads(from_python(value)) == value
    assert len(from_python([1, {"a": "é"}])) == len('[1,{"a":"é"}]'.encode())


@given(st.text(alphabet='[]{}",:\\ \n-+.0123456789eE_truefalsn\x00é', max_size=12))
def test_the_slow_path_accepts_what_json_is_and_nothing_else(noise: str) -> None:
    text = f"[{HUGE},{noise}]"
    try:
        expected = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    except ValueError:
        with pytest.raises(NotJson):
            loads(text.encode())
    else:
        if inf in expected or -inf in expected:
            with pytest.raises(NotJson, match="overflows"):
                loads(text.encode())
        else:
            assert loads(text.encode()) == expected


@pytest.mark.parametrize(
    "digits",
    [
        "0",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "1" * 640,
        "-" + "2" * 641,
        "3" * 4_301,
        "4" * 6_000,
    ],
    ids=lambda digits: f"{digits[:4]}x{len(digits)}",
)
def test_whole_numbers_are_kept_digit_for_digit(digits: str) -> None:
    text = b'{"n":[%s]}' % digits.encode()

    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b'{"a": -1e400}',
        b"1" * 400 + b".0",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"'a'",
        b"[1,]",
        b'{"a":1,}',
        b"[1 2]",
        b"{1:2}",
        b'{"a" 1}',
        b'{"a":}',
        b"[1",
        b'{"a":1',
        b'"a',
        b'"\n"',
        b'"\\x41"',
        b'"\\u12"',
        b"]",
        b"",
        b" ",
        b"1 2",
        b"nul",
        b"\xff",
        b'"\xed\xa0\x80"',  # a surrogate in UTF-8
        b"\xef\xbb\xbf1",  # a byte order mark
        b"// no\n1",
    ],
)
def test_what_is_not_json(text: bytes) -> None:
    with pytest.raises(NotJson):
        loads(text)


@pytest.mark.parametrize("beside", [b"1", b"1" * 30], ids=["fast", "slow"])
def test_of_a_key_that_stands_twice_the_last_counts(beside: bytes) -> None:
    text = b'{"a":1,"b":{"c":1,"c":2},"a":[3],"n":%s}' % beside

    assert dumps(loads(text)) == b'{"a":[3],"b":{"c":2},"n":%s}' % beside


def test_512_levels_are_kept() -> None:
    value = loads(nested(512))

    assert not is_too_deep(value)
    assert dumps(value) == nested(512)
    assert from_python(value) == nested(512)


@pytest.mark.parametrize("levels", [513, 990, 100_000])
def test_more_levels_are_json_but_not_stored(levels: int) -> None:
    value = loads(nested(levels))

    assert is_too_deep(value)
    with pytest.raises(NotStorable, match="512"):
        dumps(value)
    with pytest.raises(NotStorable):
        from_python(value)


def test_width_is_no_depth() -> None:
    wide: list[Json] = [[] for _ in range(2_000)]

    assert dumps(loads(from_python(wide))) == from_python(wide)


def test_deep_objects_count_as_lists_do() -> None:
    text = b'{"a":' * 512 + b"1" + b"}" * 512

    assert dumps(loads(text)) == text
    with pytest.raises(NotStorable):
        dumps(loads(b"[%s]" % text))


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'["a\\udc00b"]', b'{"\\ud83d":1}', b'{"a":[1,{"b":"\\ude00"}]}']
)
def test_a_lone_surrogate_is_json_but_not_stored(text: bytes) -> None:
    value = loads(text)

    with pytest.raises(NotStorable, match="surrogate"):
        dumps(value)
    with pytest.raises(NotStorable):
        from_python(value)


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "😀"


def test_control_characters_are_kept() -> None:
    every = "".join(map(chr, range(33))) + "\x7f\x85\u2028"

    assert loads(dumps(every)) == every
    assert loads(dumps([every, HUGE])) == [every, HUGE]


@pytest.mark.parametrize("value", [nan, [inf], {"a": -inf}, object(), {1, 2}, b"bytes", {("a",): 1}, 1j])
def test_python_values_that_json_lacks(value: object) -> None:
    with pytest.raises(NotStorable):
        from_python(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[object] = []
    ring.append(ring)

    with pytest.raises(NotStorable):
        from_python(ring)
