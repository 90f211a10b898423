"""A dry run of every stage on the CPU: data makers, objectives, training with resume, evaluation and export."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from assets.ember.recipe import (
    access,
    baseline,
    branches,
    checkpoint,
    decide,
    evaluate,
    export,
    lines,
    logs,
    model,
    objectives,
    optim,
    pointing,
    quantise,
    replies,
    retrieval,
    train,
)
from assets.ember.recipe.chats import converse
from assets.ember.recipe.data import Data, Sizes, examples, loaders
from assets.ember.recipe.gdn import gated_delta_rule
from assets.ember.recipe.wordings import Thesaurus, reworded

# A shard's file stays open as long as the loader that reads it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def data(folder):
    return Data.load(folder)


def test_gated_delta_rule_equals_the_recurrence():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 150, 3, 16) for _ in range(3))
    g, beta = -torch.rand(2, 150, 3), torch.rand(2, 150, 3)
    qn, kn = F.normalize(q, dim=-1) * 16**-0.5, F.normalize(k, dim=-1)
    state, expected = torch.zeros(2, 3, 16, 16), []
    for t in range(150):
        state = state * g[:, t].exp()[..., None, None]
        write = (v[:, t] - (kn[:, t, :, None] @ state)[:, :, 0]) * beta[:, t, :, None]
        state = state + kn[:, t, :, :, None] * write[:, :, None]
        expected.append((qn[:, t, :, None] @ state)[:, :, 0])
    found = gated_delta_rule(torch.stack((q, k, v), 2), g, beta)
    torch.testing.assert_close(found, torch.stack(expected, 1), atol=2e-5, rtol=1e-4)


def test_gated_delta_rule_gradient():
    torch.manual_seed(1)
    inputs = [torch.randn(1, 70, 3, 1, 4), -torch.rand(1, 70, 1), torch.rand(1, 70, 1)]
    inputs = [x.requires_grad_() for x in inputs]
    gated_delta_rule(*inputs).square().sum().backward()
    for tensor in inputs:
        change = torch.randn_like(tensor)
        with torch.no_grad():
            up, down = (
                gated_delta_rule(*(x + s * 1e-2 * change if x is tensor else x for x in inputs)).double().square().sum()
                for s in (1, -1)
            )
        assert (tensor.grad * change).sum().item() == pytest.approx((up - down).item() / 2e-2, rel=0.03, abs=0.02)


def test_forward_agrees_with_transformers(folder, data):
    hf = pytest.importorskip("transformers.models.qwen3_5")
    config = json.loads((folder / "config.json").read_text())
    reference = hf.modeling_qwen3_5.Qwen3_5ForConditionalGeneration(
        hf.configuration_qwen3_5.Qwen3_5Config(**config, vision_start_token_id=0, tie_word_embeddings=True)
    ).eval()
    torch.manual_seed(0)
    state = {
        n: p.detach().clone() + torch.randn_like(p) * 0.05
        for n, p in reference.named_parameters()
        if n != "lm_head.weight"
    }
    reference.load_state_dict(state, strict=False)
    ours = model.Ember(data.shape)
    ours.load_state_dict(state)
    image = torch.randint(0, 256, (1, 64, 96, 3), dtype=torch.uint8)
    lead, tail, token = [5, 6, 7], [8, 9, 10, 11], config["image_token_id"]
    ids = torch.tensor([lead + [token] * 6 + tail])
    with torch.no_grad():
        embedded = torch.cat((ours.embed(ids[:, :3]), ours.vision(image), ours.embed(ids[:, 9:])), 1)
        final = ours.text(embedded, model.image_positions(3, 2, 3, 4, torch.device("cpu"))[:, None]).final
        patches = (
            (image.permute(0, 3, 1, 2).float() / 127.5 - 1).view(3, 2, 2, 16, 3, 2, 16).permute(1, 4, 2, 5, 0, 3, 6)
        )
        patches = patches.reshape(24, 3, 1, 16, 16).expand(-1, -1, 2, -1, -1).reshape(24, -1)
        logits = reference(
            input_ids=ids,
            pixel_values=patches,
            image_grid_thw=torch.tensor([[1, 4, 6]]),
            mm_token_type_ids=(ids == token).int(),
        ).logits
    torch.testing.assert_close(final @ ours.text.embed_tokens.weight.T, logits, atol=1e-4, rtol=1e-4)


def test_log_answers_hold_what_was_asked():
    rng, present, absent = random.Random(3), 0, 0
    for seed in range(12):
        doc = logs.log_document(random.Random(seed), 60, ["table", "river", "stone"], wanted=12, held_out=seed % 2 == 0)
        for question, answer in doc.questions:
            if answer is None:
                absent += 1
            else:
                present += 1
                assert 0 <= answer < len(doc.lines), question
        value = logs.lexical(rng, doc.lines, 7)
        assert value is None or any(word in doc.lines[7] for word in value.split())
    assert present > 80
    assert absent > 5


def test_lexical_questions_single_out_their_line():
    lines = ["alpha beta 1", "alpha beta 2", "gamma beta 2"]
    assert logs.unique(lines, 0, ["1"])
    assert not logs.unique(lines, 1, ["alpha"])
    assert logs.unique(lines, 1, ["alpha", "2"])


def test_documents_drop_what_does_not_fit(data):
    doc = retrieval.Document(
        [f"line number {i} of the evidence" for i in range(30)], [("number 2", 2), ("number 29", 29), ("absent", None)]
    )
    row = {name: array[0] for name, array in lines.collate([doc], data.words, 300).items()}
    assert row["length"] <= 300
    assert row["answer"][row["asked"]].tolist() == [2, -1]
    assert all(ids[at] == data.words.line for ids, at in zip(row["ids"][:2], row["at"][:2], strict=True))
    assert data.words.tokenizer.decode(row["evidence"][row["line_of"] == 2]) == "line number 2 of the evidence\n"


def test_choices_are_balanced_and_answerable(data):
    rng, first = random.Random(0), []
    for _ in range(300):
        text, answer = decide.prompt(rng, decide.make(rng, data.material))
        assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
        if answer in decide.LETTERS:
            assert f"{answer}" in text
            first.append(answer == "A")
    assert 0.15 < np.mean(first) < 0.5


def test_views_keep_boxes_on_their_elements():
    pixels = np.zeros((200, 300, 3), np.uint8)
    pixels[60:80, 100:140] = 255
    screen = pointing.Screen(
        pixels, [{"box": [100, 60, 140, 80], "kind": "button", "queries": [{"q": "white", "by": "name"}]}]
    )
    shown = pointing.view(screen, (50, 40, 200, 140), 320, 224)
    x0, y0, x1, y1 = (round(v) for v in shown.items[0]["box"])
    assert shown.pixels[y0 + 4 : y1 - 4, x0 + 4 : x1 - 4].min() > 200
    assert shown.pixels[:, x1 + 6 :].max() < 60
    assert [item["box"] for item in pointing.view(screen, (0, 0, 90, 60), 96, 64).items] == [None]


@pytest.mark.parametrize(
    ("size", "expected"), [((1920, 1080), (1920, 1088)), ((1366, 768), (1376, 768)), ((3840, 2160), (1920, 1056))]
)
def test_fit_is_the_products_sizing(size, expected):
    assert pointing.fit(*size) == expected


def test_click_lands_in_the_box():
    box = torch.tensor([[[10.0, 40.0, 60.0, 58.0], [70.0, 5.0, 86.0, 21.0]]])
    target = objectives.point_target(box, 192, 128, 32)
    scores = F.pad((target + 1e-9).log(), (1, 0), value=-20.0)
    x, y, nothing = objectives.click(scores, 192, 128, 32)
    assert objectives.inside(x, y, box).all()
    assert nothing.max() < 1e-3


def test_rounding_to_the_shipped_precision():
    x = torch.randn(3, 8, 64) * 0.02
    y = quantise.round_nvfp4(x)
    assert (y - x).norm() / x.norm() < 0.11
    torch.testing.assert_close(quantise.round_nvfp4(y), y, atol=0, rtol=2e-7)
    torch.testing.assert_close(quantise.round_nvfp4(x[1]), y[1], atol=0, rtol=0)
    assert (quantise.round_int8(x) - x).norm() / x.norm() < 0.01
    assert quantise.round_e2m1(torch.tensor([0.3, -5.1, 9.0, 2.4])).tolist() == [0.5, -6.0, 6.0, 2.0]


def test_optimiser_follows_the_gradient_and_keeps_names(data):
    torch.manual_seed(0)
    net = model.Ember(data.shape)
    before = {n: t.clone() for n, t in net.state_dict().items()}
    optimiser = optim.Optimiser(net, {"text": 3e-3, "vision": 1e-3}, torch.float32)
    assert all(torch.equal(before[n], t) for n, t in optimiser.state().items())
    ids = torch.randint(0, 200, (2, 40))
    losses = []
    for _ in range(5):
        final = net.text(net.embed(ids)).final
        loss = F.cross_entropy((final[:, :-1] @ net.text.embed_tokens.weight.T).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        losses.append(loss.item())
        optimiser.step(1.0)
    assert losses[-1] < losses[0] - 0.3
    optimiser.rounded = True
    optimiser.refresh()
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    torch.testing.assert_close(
        dict(net.named_parameters())[name].data, quantise.round_nvfp4(optimiser.state()[name]), atol=0, rtol=0
    )


def test_gradients_that_are_not_finite_change_nothing(data):
    net = model.Ember(data.shape)
    optimiser = optim.Optimiser(net, {"text": 1e-3, "vision": 1e-3}, torch.float32)
    before = optimiser.master.clone()
    optimiser.grads.fill_(float("nan"))
    optimiser.step(1.0)
    decayed = (optimiser.master - before).abs().max()
    assert torch.isfinite(optimiser.master).all()
    assert decayed < 1e-3


def test_checkpoint_round_trip_and_pieces(tmp_path, data):
    state = model.Ember(data.shape).state_dict()
    path = tmp_path / "a.int8.safetensors"
    checkpoint.save_int8(state, path)
    loaded = checkpoint.load_int8(path)
    assert {n: t.shape for n, t in loaded.items()} == {n: t.shape for n, t in state.items()}
    for name, tensor in state.items():
        assert (loaded[name] - tensor).abs().max() <= 0.006 * tensor.abs().max() + 1e-6
    checkpoint.split(path, tmp_path / "pieces", piece=1000)
    export.main(["join", str(tmp_path / "b.safetensors"), *map(str, (tmp_path / "pieces").iterdir())])
    assert (tmp_path / "b.safetensors").read_bytes() == path.read_bytes()


def test_a_diverged_checkpoint_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not finite"):
        checkpoint.save_int8({"w": torch.full((2, 64), float("nan"))}, tmp_path / "x.safetensors")


def test_the_teacher_converses(data, teacher):
    rows = converse(teacher, data.words, [], 2, 120, seed=0)
    text = data.words.tokenizer.decode(rows[0].tolist(), skip_special_tokens=False)
    assert rows.shape == (2, 120)
    assert text.startswith("<|im_start|>system\nYou are")


def test_loaders_yield_every_kind(data):
    found = loaders(data, Sizes.tiny(), 1.0, 0, (0, 0, 0, 0))
    _, batch = next(found["point"])
    assert batch["images"].shape == (2, 128, 192, 3)
    assert batch["asked"].any()
    assert set(next(found["line"])[1]) == {"evidence", "length", "line_of", "ids", "at", "answer", "asked"}
    assert next(found["choice"])[1]["ids"].shape == (2, 160)


def test_every_batch_of_a_bucket_has_the_shapes_of_its_example(data):
    """A captured pass takes no other shapes."""
    sizes = Sizes.tiny()
    shapes = {
        key: {name: (array.shape, array.dtype) for name, array in arrays.items()}
        for key, arrays in examples(data, sizes).items()
    }
    for kind, batches in loaders(data, sizes, 1.0, 3, (0, 0, 0, 0)).items():
        for _ in range(4):
            bucket, batch = next(batches)
            assert {name: (t.numpy().shape, t.numpy().dtype) for name, t in batch.items()} == shapes[kind, bucket]


def _network(data):
    torch.manual_seed(0)
    net = model.Ember(data.shape)
    for parameter in net.parameters():
        parameter.data.copy_(torch.randn_like(parameter) * 0.05)
    return net


def test_a_branch_reads_a_picture_as_the_prompt_that_holds_it_alone(data):
    net = _network(data)
    lead, tail, ids = torch.randint(0, 200, (2, 4)), torch.randint(0, 200, (2, 1)), torch.randint(0, 200, (2, 3, 7))
    at, picture = torch.randint(2, 7, (2, 3)), torch.randn(2, 12, data.shape.hidden) * 0.05
    prefix = torch.cat((net.embed(lead), picture, net.embed(tail)), 1)
    positions = model.image_positions(4, 3, 4, 1, torch.device("cpu"))
    start = torch.full((2,), int(positions.max()) + 1)
    scores = branches.branch_scores(net.text, prefix, positions[:, None], net.embed(ids), at, 3, start=start)
    for branch in range(3):
        whole = torch.cat((prefix, net.embed(ids[:, branch])), 1)
        out = net.text(whole, model.image_positions(4, 3, 4, 8, torch.device("cpu"))[:, None].expand(-1, 2, -1))
        alone = model.read_scores(out, at[:, branch : branch + 1] + prefix.shape[1], 3, prefix.shape[1])
        torch.testing.assert_close(scores[:, branch], alone[:, 0], atol=1e-4, rtol=1e-4)


def test_a_branch_reads_lines_as_the_prompt_that_holds_it_alone(data):
    """The shorter of two evidences is padded behind its end."""
    net, length = _network(data), torch.tensor([150, 93])
    evidence, ids, at = torch.randint(0, 200, (2, 150)), torch.randint(0, 200, (2, 3, 7)), torch.randint(2, 7, (2, 3))
    positions = torch.arange(150).expand(3, 2, -1)
    scores = branches.branch_scores(net.text, net.embed(evidence), positions, net.embed(ids), at, 2, length)
    for row, end in enumerate(length.tolist()):
        for branch in range(3):
            out = net.text(net.embed(torch.cat((evidence[row, :end], ids[row, branch]))[None]))
            alone = model.read_scores(out, at[row : row + 1, branch : branch + 1] + end, 2, end)
            torch.testing.assert_close(scores[row, branch, : end - 2], alone[0, 0], atol=1e-4, rtol=1e-4)


def test_buckets_of_equal_shapes_share_a_pass(data):
    """The tiny sizes have two buckets of pictures alike, seen in different ways."""
    batches = {key: {n: torch.from_numpy(a) for n, a in found.items()} for key, found in tiny_examples(data).items()}
    assert train.shape_of("point", batches["point", 0]) == train.shape_of("point", batches["point", 1])
    assert train.shape_of("line", batches["line", 0]) != train.shape_of("choice", batches["choice", 0])


def tiny_examples(data):
    return examples(data, Sizes.tiny())


def test_few_questions_about_lines_have_no_answer():
    rng = random.Random(0)
    doc = retrieval.Document(["a", "b"], [("here", 0)] * 10 + [("gone", None)] * 10)
    kept = [answer for _ in range(300) for _, answer in lines.balanced(rng, doc).questions]
    assert kept.count(None) / len(kept) == pytest.approx(lines.NONE, abs=0.02)
    assert kept.count(0) == 3000


def test_train_resume_evaluate_and_export(folder, teacher, tmp_path):
    common = ["--data", str(folder), "--dry-run", "--seconds", "600", "--workers", "0", "0", "0", "0", "--warm", "2"]
    first = train.train(train.parse([*common, "--out", str(tmp_path / "one"), "--steps", "4"]), teacher)
    second = train.train(
        train.parse(
            [
                *common,
                "--out",
                str(tmp_path / "two"),
                "--resume",
                str(first),
                "--steps",
                "3",
                "--round-from",
                "0",
                "--seed",
                "2",
            ]
        ),
        teacher,
    )
    rows = [json.loads(row) for row in (tmp_path / "one" / "log0.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 4
    assert {"point", "kl", "line", "norm_text", "norm_vision"} <= {key for row in rows for key in row}
    moved = checkpoint.load_int8(second)
    assert any((moved[n] - t).abs().max() > 1e-5 for n, t in checkpoint.load_int8(first).items())

    arguments = [
        "--data",
        str(folder),
        "--checkpoint",
        str(second),
        "--screens",
        "3",
        "--choices",
        "2",
        "--windows",
        "1",
        "--prompts",
        "2",
        "--documents",
        "1",
        "--tokens",
        "4",
        "--device",
        "cpu",
    ]
    result = evaluate.evaluate(evaluate.parse([*arguments, "--shipped", "--out", str(tmp_path / "r.json")]), teacher)
    assert json.loads((tmp_path / "r.json").read_text()) == result
    assert result["rendered"]["all"]["n"] > 5
    assert result["choices"]["all"]["n"] == 24
    assert result["text"]["perplexity"] > 1
    assert result["lines"]["logs, 60 lines: first"]["n"] > 1
    export.main(["bf16", str(second), str(tmp_path / "model.safetensors")])
    assert (tmp_path / "model.safetensors").stat().st_size > 10_000


def test_a_run_can_continue_from_shipped_weights(tmp_path, tiny_folder):
    """Every tensor under its name, as the engine reads it, to the training checkpoint's rounding."""
    from engine.checkpoint.reader import open_checkpoint

    export.main(["int8", str(tiny_folder), str(tmp_path / "from.int8.safetensors")])
    found = checkpoint.load_int8(tmp_path / "from.int8.safetensors")
    with open_checkpoint(tiny_folder) as shipped:
        assert set(found) == set(shipped.names())
        for name, tensor in found.items():
            wanted = shipped.tensor(name)
            assert (tensor - wanted).norm() <= 0.01 * wanted.norm(), name


def test_questions_are_reworded_but_keep_their_slots():
    said = {reworded(random.Random(seed), "the login of {user} failed on {host}") for seed in range(60)}
    assert len(said) > 20
    assert all("{user}" in question and "{host}" in question for question in said)


def test_words_are_described_by_their_meanings():
    thesaurus = Thesaurus([("remove", "take something away"), ("a place to sit", "chair")])
    assert thesaurus.of("removed") == ["take something away"]
    assert thesaurus.described(random.Random(0), ["chair"], 0.0) == "a place to sit"
    assert thesaurus.described(random.Random(0), ["unknown", "words"], 0.0) is None


def test_lines_nobody_wrote_questions_for_are_asked_by_meaning(data):
    rng, known = random.Random(1), data.material.pairs
    docs = [logs.log_document(rng, 40, ["stone"], wanted=12, pairs=known) for _ in range(30)]
    texts = {text for row in known.rows for text in row}
    meant = [
        line
        for doc in docs
        for _, answer in doc.questions
        if answer is not None
        for line in [doc.lines[answer]]
        if any(text in line for text in texts)
    ]
    assert len(meant) > 10


def test_near_absent_elements_are_asked_for_and_far_ones_too():
    boxes = [[10 + 30 * i, 10, 30 + 30 * i, 30] for i in range(20)]
    items = [
        {"box": box, "kind": "button", "queries": [{"q": f"open thing{i}", "by": "text"}]}
        for i, box in enumerate(boxes)
    ]
    near = {"box": None, "kind": "absent", "queries": [{"q": "open box", "by": "text"}]}
    far = [{"box": box, "kind": "link", "queries": [{"q": f"shop{i}", "by": "text"}]} for i, box in enumerate(boxes)]
    screen = pointing.Screen(np.zeros((64, 640, 3), np.uint8), [*items, near])
    asked = [row for seed in range(40) for row in pointing.questions(random.Random(seed), screen, far, 16)]
    missing = [question.lower() for question, box, *_ in asked if box is None]
    assert len(missing) / len(asked) == pytest.approx(pointing.ABSENT, abs=0.03)
    assert any("open box" in question for question in missing)
    assert any("shop" in question for question in missing)
    assert pointing.place((0, 0, 20, 10), (640, 480)) == "at the top left"
    assert pointing.place((300, 230, 340, 250), (640, 480)) == "in the middle"


def test_replies_are_what_the_template_renders(data):
    rng = random.Random(0)
    prompts, answers = zip(*(replies.rendered(replies.calls(rng, data.material)) for _ in range(40)), strict=True)
    assert all(prompt.endswith("<|im_start|>assistant\n") for prompt in prompts)
    assert all("<tools>" in prompt for prompt in prompts)
    assert all(answer.endswith("<|im_end|>") and "<|im_start|>" not in answer for answer in answers)
    called = [answer for answer in answers if "<tool_call>" in answer]
    assert len(called) > 15
    for answer in called:
        call = json.loads(answer.split("<tool_call>\n")[1].split("\n</tool_call>")[0])
        assert set(call) == {"name", "arguments"}
    row = {name: array[0] for name, array in replies.batch(rng, data.material, data.words, 1, 512).items()}
    kept = row["token"] >= 0
    assert row["token"][kept].tolist() == row["ids"][row["at"][kept] + 1].tolist()
    assert row["token"][kept][-1] == data.words.end


def test_prompts_for_reading_are_not_taught():
    small = {"Hi! Who are you?", "Thank you!"}
    taught = {question.lower() for asked, _ in replies._written() for question in asked}
    assert len(evaluate.PROMPTS) == 50
    assert not {prompt.lower() for prompt in evaluate.PROMPTS if prompt not in small} & taught


def test_reversed_options_keep_their_answer():
    choice = decide.Choice("", "Which?", ["red", "green", "blue"], 0)
    turned = decide.reversed_order(choice)
    assert turned.options[turned.answer] == "red"
    assert decide.reversed_order(turned) == choice
    assert decide.reversed_order(decide.Choice("", "?", ["red", "green"], -1)).answer == -1


def test_the_baseline_clicks_the_nearest_text():
    words = ["save", "open", "lines"]

    def embed(texts):
        return torch.tensor([[float(word in text.lower()) for word in words] for text in texts])

    asked = [("the save button", (0, 0, 20, 10), "button", "text"), ("print it", None, "button", "text")]
    texts = [("Open", (50, 0, 70, 10)), ("Save", (2, 2, 18, 8))]
    shares = baseline.points(embed, [(asked, texts)], 0.5)
    assert shares["all"] == {"share": 1.0, "n": 1}
    assert shares["absent refused"] == {"share": 1.0, "n": 1}
    doc = {"name": "log", "lines": ["nothing", "open it"], "questions": [("who did open", [1]), ("gone", None)]}
    assert baseline.lines(embed, [doc], 0.5)["log: first"]["share"] == 1.0


def test_requests_that_stand_out_are_asked_by_what_they_mean():
    present, absent = 0, 0
    for seed in range(20):
        doc = access.access_document(random.Random(seed), 60, ["stone", "river"], wanted=10)
        statuses = [int(line.split('" ')[1].split()[0]) for line in doc.lines]
        for question, answer in doc.questions:
            meant = [code for code, said in access.STATUSES.items() if any(clause in question for clause in said)]
            if answer is None:
                absent += 1
                assert not any(statuses.count(code) for code in meant), question
            else:
                present += 1
                assert not meant or statuses[answer] in meant, question
    assert present > 80
    assert absent > 10
