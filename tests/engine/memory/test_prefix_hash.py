"""Names of prefixes: the same for the same tokens and pictures, and for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.prefix_hash import longest_match, prefix_chain, tail_hash

BLOCK = 4
TOKENS = st.lists(st.integers(0, 200_000), max_size=30)
PICTURES = st.dictionaries(st.integers(0, 29), st.binary(min_size=1, max_size=20), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)


def names(ids: list[int], pictures: tuple[tuple[int, bytes], ...] = (), block: int = BLOCK) -> list[bytes]:
    """The name of every prefix, from one token to all."""
    chain = prefix_chain(ids, block, pictures)
    return [tail_hash(chain, ids, tokens, block, pictures) for tokens in range(1, len(ids) + 1)]


@given(TOKENS, PICTURES)
def test_names_on_edges_are_the_chain(ids: list[int], pictures: tuple[tuple[int, bytes], ...]) -> None:
    chain = prefix_chain(ids, BLOCK, pictures)
    assert len(chain) == len(ids) // BLOCK
    every = names(ids, pictures)
    assert tuple(every[BLOCK - 1 :: BLOCK]) == chain
    assert len(set(every)) == len(ids), "prefixes of different length have different names"
    assert all(len(name) == 16 for name in every)


@given(TOKENS, PICTURES, st.data())
def test_a_name_depends_on_what_is_before_it_only(
    ids: list[int], pictures: tuple[tuple[int, bytes], ...], data: st.DataObject
) -> None:
    tokens = data.draw(st.integers(0, len(ids)))
    inside = tuple(picture for picture in pictures if picture[0] < tokens)
    assert names(ids[:tokens], inside) == names(ids, pictures)[:tokens]


@given(TOKENS.filter(bool), PICTURES, st.data())
def test_any_other_token_changes_every_later_name(
    ids: list[int], pictures: tuple[tuple[int, bytes], ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(ids) - 1))
    other = [*ids[:place], data.draw(st.integers(0, 200_000).filter(lambda token: token != ids[place]))]
    same = differing(names(ids, pictures), names(other + ids[place + 1 :], pictures))
    assert same == place


@given(TOKENS.filter(bool), PICTURES, st.data())
def test_any_other_picture_changes_every_name_from_its_first_token_on(
    ids: list[int], pictures: tuple[tuple[int, bytes], ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(ids) - 1))
    without = {start: digest for start, digest in pictures if start != place}
    before = dict(pictures).get(place, b"")
    changed = data.draw(st.binary(min_size=1).filter(lambda digest: digest != before))
    assert differing(names(ids, pictures), names(ids, tuple(sorted({**without, place: changed}.items())))) == place
    if before:
        assert differing(names(ids, pictures), names(ids, tuple(sorted(without.items())))) == place


def test_a_picture_at_another_place_is_another_prefix() -> None:
    ids = [1] * 12
    assert differing(names(ids, ((5, b"picture"),)), names(ids, ((6, b"picture"),))) == 5
    assert differing(names(ids, ((3, b"picture"),)), names(ids, ((4, b"picture"),))) == 3
    # Two pictures, cut elsewhere, are others.
    assert differing(names(ids, ((4, b"ab"), (5, b"c"))), names(ids, ((4, b"a"), (5, b"bc")))) == 4


def differing(one: list[bytes], other: list[bytes]) -> int:
    """How many names are shared; after the first that differs all must."""
    assert len(one) == len(other)
    same = [a == b for a, b in zip(one, other, strict=True)]
    count = sum(same)
    assert same == [True] * count + [False] * (len(one) - count)
    return count


@given(TOKENS, st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(10, 19), max_size=12))
def test_siblings_share_exactly_their_common_blocks(common: list[int], one: list[int], other: list[int]) -> None:
    first, second = prefix_chain(common + one, BLOCK), prefix_chain(common + other, BLOCK)
    shared = len(common) // BLOCK
    assert first[:shared] == second[:shared]
    assert not set(first[shared:]) & set(second[shared:])


def test_another_block_size_names_otherwise() -> None:
    ids = list(range(16))
    assert prefix_chain(ids, 4)[-1] != prefix_chain(ids, 8)[-1]


def test_names_do_not_change_between_versions() -> None:
    """They are file names of the disk tier."""
    ids = list(range(10))
    chain = prefix_chain(ids, 4, ((2, b"picture"),))
    assert chain[-1].hex() == "802b46c64cac7ca95b04b2a44abcc5cc"
    assert tail_hash(chain, ids, 10, 4).hex() == "52698b314bd0fa73794856d2d5125700"


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 2), (-1, 2), (11, 2), (10, 1)])
def test_prefixes_that_the_prompt_has_not(tokens: int, blocks: int) -> None:
    ids = list(range(10))
    with pytest.raises(ValueError, match=f"has no prefix of {tokens}"):
        tail_hash(prefix_chain(ids, 4)[:blocks], ids, tokens, 4)


def test_the_longest_match() -> None:
    ids = list(range(11))
    chain = prefix_chain(ids, BLOCK)
    every = names(ids)

    def match(limit: int, *lengths: int, complete: bool = True) -> int | None:
        candidates = [(n, every[n - 1], complete, n) for n in sorted(lengths, reverse=True)]
        return longest_match(candidates, ids, chain, BLOCK, (), limit)

    assert match(11, 3, 8, 10) == 10
    assert match(9, 3, 8, 10) == 8
    assert match(7, 8, 10) is None
    assert match(11, 11) == 11
    assert match(11, 5, 11, complete=False) == 5, "all of a prompt needs the last column's residual"
    other = longest_match([(12, b"", True, 12), (10, b"other", True, 10)], ids, chain, BLOCK, (), 99)
    assert other is None
