"""The patches and the walk of the KHA paper: windows, cleaning, pages, pictures."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome import KernelPCA
from orthodrome.denoising.cleaning import clean
from real_data import REPOSITORY, load_or_skip

FOLDER = REPOSITORY / "experiments/kha"


@pytest.fixture(scope="module")
def kha():
    names = ("quarters", "patches", "skeletons", "denoising")
    with experiment_scripts("kha", *names) as scripts:
        yield scripts


@pytest.fixture
def image(kha, monkeypatch):
    """A small image in place of the cameraman, and noise of 0.1 on a quarter of it."""
    rows, columns = np.mgrid[:48, :48] / 48
    made = 0.5 + 0.4 * np.sin(9 * rows) * (columns > 0.4)
    monkeypatch.setattr(kha.quarters, "picture", lambda side: made[:side, :side])
    return made


@pytest.fixture
def quarter(kha, image):
    return kha.quarters.Quarter(48, 0.1, 0, 1)


# ---------------------------------------------------------------------------- windows


def test_a_quarter_of_the_paper_has_so_many_windows(kha):
    assert kha.quarters.windows_of(np.zeros((128, 128))).shape == (3844, 121)


def test_windows_lie_two_pixels_apart_and_are_mirrored_at_the_border(kha):
    image = np.arange(24.0 * 24).reshape(24, 24)
    windows = kha.quarters.windows_of(image).reshape(10, 10, 11, 11)
    np.testing.assert_array_equal(windows[1, 2], image[:11, 2:13])
    np.testing.assert_array_equal(windows[0, 1, :3, 0], image[[1, 0, 0], 0])
    np.testing.assert_array_equal(windows[9, 9, -3:, 0], image[[-1, -2, -3], 16])


def test_windows_put_together_are_the_image(kha):
    image = np.random.default_rng(0).standard_normal((24, 24))
    windows = kha.quarters.windows_of(image)
    np.testing.assert_allclose(kha.quarters.image_of(windows, 24), image, rtol=1e-12)
    # the average: what one of the windows over a pixel says counts as one of them
    corner = windows.copy()
    corner[0] += 4.0
    changed = kha.quarters.image_of(corner, 24) - image
    assert changed[0, 0] == pytest.approx(4.0 / 4)
    assert changed[8, 8] == pytest.approx(4.0 / 36)
    assert np.count_nonzero(np.abs(changed) > 1e-12) == 9 * 9


def test_quarters_tile_the_image(kha):
    image = np.arange(64.0).reshape(8, 8)
    parts = [kha.quarters.quarter_of(image, n) for n in range(4)]
    joined = kha.patches.joined(
        [{"a": part, "b": 1} if n else {"a": part} for n, part in enumerate(parts)]
    )
    assert list(joined) == ["a"]
    np.testing.assert_array_equal(joined["a"], image)
    np.testing.assert_array_equal(parts[1], image[:4, 4:])


# ---------------------------------------------------------------------------- the problem


def test_problem_is_that_of_the_whole_spectrum(kha, quarter):
    made = kha.common.make_problem("a", quarter.kernel(quarter.windows), 20)
    assert quarter.problem.minimal == pytest.approx(made.minimal, rel=1e-9)
    np.testing.assert_allclose(quarter.problem.eigenvalues, made.eigenvalues, rtol=1e-9)
    assert abs(kha.common.excess_of(quarter.problem, quarter.exact)) < 1e-9


def test_exact_components_clean_as_kernel_pca_does(kha, quarter):
    model = KernelPCA(20, quarter.kernel).fit(quarter.windows)
    expected = kha.quarters.image_of(clean(model, quarter.windows).points, 24)
    np.testing.assert_allclose(quarter.cleaned(quarter.exact), expected, atol=1e-3)
    # centred features do not see a constant in the coefficients
    moved = quarter.cleaned(quarter.exact + 0.3)
    np.testing.assert_allclose(moved, expected, atol=1e-3)
    # any rotation of the components spans the same, and cleans alike
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0] @ quarter.exact
    np.testing.assert_allclose(quarter.cleaned(turned), expected, atol=1e-3)


def test_followed_is_one_run_looked_at_now_and_then(kha, quarter):
    options = kha.patches.Setting("KHA/et", kha.patches.AUTOMATIC).options
    seen = dict(kha.patches.followed(quarter.problem, (1, 3), 0, options))
    errors = kha.common.curve(quarter.problem, (1, 3), random_state=0, **options)
    found = [kha.common.excess_of(quarter.problem, seen[mark]) for mark in (1, 3)]
    assert found == pytest.approx(errors, rel=1e-9)
    wild = kha.patches.Setting("KHA", kha.patches.OLD, 1e3).options
    assert list(kha.patches.followed(quarter.problem, (1, 2), 0, wild)) == [(1, None), (2, None)]


def test_settings_say_what_the_solver_is_told(kha):
    Setting, HAND = kha.patches.Setting, kha.patches.HAND
    assert Setting("KHA-SMD", kha.patches.AUTOMATIC).options == {"gain": "smd"}
    assert Setting("KHA/t", HAND, 0.5).options == {"gain": "t", "eta0": 0.5, "start": "paper"}
    assert Setting("KHA-SMD", HAND, 0.5, 0.1).options["mu"] == 0.1


# ---------------------------------------------------------------------------- a whole small run


@pytest.fixture(scope="module")
def small(kha):
    """Rows and images of a run of a few passes on a small image, its ground a grey of 255."""
    rows, columns = np.mgrid[:48, :48] / 48
    made = 128 / 255 + 0.4 * np.sin(9 * rows) * (columns > 0.4)
    everywhere = kha.quarters.QUARTERS
    size = kha.patches.Size(48, (0.03, 0.2), (0, 1), (1, 4), (8,), everywhere, (4, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kha.quarters, "picture", lambda side: made)
        return kha.patches.measure(size, True)


def test_every_part_of_a_run_is_there(kha, small):
    patches, (rows, images) = kha.patches, small
    found = patches.Findings(rows)
    assert found.seeds == [0, 1]
    assert found.marks("KHA", patches.OLD) == [1, 4, 8]
    assert found.marks("KHA/et", patches.HAND) == [1, 4]
    assert len(found.settings) == 5
    assert len(found.snrs("KHA/et", patches.HAND, 4)) == 2
    assert len(found.snrs("KHA", patches.OLD, 8)) == 1
    assert {"clean", "noisy", "exact kernel PCA", f"KHA, {patches.OLD}, 8"} <= set(images)
    assert all(image.shape == (48, 48) for image in images.values())
    eta0 = found.parameters("KHA/et", patches.HAND)["eta0"]
    assert found.parameters("KHA-SMD", patches.HAND)["eta0"] == eta0
    grid = kha.common.grid_value
    assert all(value in [grid(n) for n in range(-12, 9)] for value in eta0)


def test_ratio_is_of_the_whole_image(kha, small):
    rows, images = small
    found = kha.patches.Findings(rows)
    clean_image, exact = (images[name] / 255 for name in ("clean", "exact kernel PCA"))
    expected = 10 * math.log10(clean_image.var() / np.mean((exact - clean_image) ** 2))
    assert found.level_snr("exact kernel PCA") == pytest.approx(expected, abs=0.1)  # of greys


def test_noise_is_the_one_that_was_asked_for(kha, small):
    found = kha.patches.Findings(small[0])
    for level in found.levels:
        square = [r["square"] for r in found.of("levels", method="noisy", level=level)]
        assert math.sqrt(np.mean(square)) == pytest.approx(level, rel=0.05)


# ---------------------------------------------------------------------------- the page


def made_rows(kha, ratios, errors):
    """Rows of made-up levels {level: (noisy, exact)} and errors {(method, gains, n_pass): …}."""
    patches = kha.patches
    base = {"seed": 0, "n_windows": 9, "signal": 1.0, "eta0": 0.5, "mu": math.nan}
    rows = []
    for level, both in ratios.items():
        for method, decibels in zip((patches.NOISY, patches.EXACT), both, strict=True):
            row = base | {"study": "levels", "level": level, "method": method, "gains": ""}
            rows.append(row | {"n_pass": 0, "excess": 0.0, "square": 10 ** (-decibels / 10)})
        row = base | {"study": "levels", "level": level, "method": "KHA", "gains": patches.OLD}
        rows.append(row | {"n_pass": 50, "excess": level, "square": math.nan})
    for (method, gains, n_pass), (error, decibels) in errors.items():
        row = base | {"study": "passes", "level": 0.1, "method": method, "gains": gains}
        rows.append(row | {"n_pass": n_pass, "excess": error, "square": 10 ** (-decibels / 10)})
    return [row | {"quarter": name} for row in rows for name in kha.quarters.QUARTERS]


def errors_of(kha, **changed):
    patches = kha.patches
    errors = {
        ("KHA", patches.OLD, 50): (0.1, 12.0),
        ("KHA", patches.OLD, 800): (0.0564, 13.46),
        ("KHA/t", patches.HAND, 50): (0.05, 13.0),
        ("KHA/et", patches.HAND, 50): (0.001, 13.49),
        ("KHA-SMD", patches.HAND, 50): (0.0001, 13.5),
        ("KHA-SMD", patches.AUTOMATIC, 50): (math.inf, math.nan),
    }
    return {key: changed.get(key[0], value) for key, value in errors.items()}


LEVELS = {0.05: (20.0, 13.5), 0.1: (10.0, 13.0), 0.2: (5.0, 11.0)}


def test_the_level_that_fits_best_is_one_where_cleaning_helps(kha):
    found = kha.patches.Findings(made_rows(kha, LEVELS, errors_of(kha)))
    assert found.helped == [0.1, 0.2]
    assert found.level == 0.1
    nearer = kha.patches.Findings(made_rows(kha, LEVELS | {0.2: (5.0, 13.4)}, errors_of(kha)))
    assert nearer.level == 0.2


def test_comparisons_follow_the_rows_and_the_published_numbers(kha, monkeypatch):
    patches = kha.patches
    rows = made_rows(kha, LEVELS, errors_of(kha))
    assert [each.finding for each in patches.compared(rows)] == ["agrees"] * 3 + ["holds"] * 3
    worse = made_rows(kha, LEVELS, errors_of(kha, **{"KHA/et": (0.2, 13.0)}))
    found = [each.finding for each in patches.compared(worse)]
    assert found == ["agrees", "agrees", "differs", "holds", "contradicted", "holds"]
    numbers = [dict(row, value=row["value"] + 1) for row in patches.SAID["numbers"]]
    monkeypatch.setitem(patches.SAID, "numbers", numbers)
    assert [each.finding for each in patches.compared(rows)][:3] == ["differs"] * 3


def test_orders_are_taken_over_the_quarters_with_the_gains_of_the_paper(kha):
    patches = kha.patches
    rows = made_rows(kha, LEVELS, errors_of(kha))
    # as bad by hand as it is good by itself: the gains that are best for it are not asked for
    swapped = {patches.HAND: math.inf, patches.AUTOMATIC: 1e-4}
    diverged = [
        {**row, "excess": swapped[row["gains"]]} if row["method"] == "KHA-SMD" else row
        for row in rows
    ]
    assert patches.compared(diverged)[-1].finding == "contradicted"
    # one quarter that goes the other way leaves an order open
    mixed = [
        {**row, "excess": 0.1}
        if (row["method"], row["quarter"]) == ("KHA-SMD", "lower left")
        else row
        for row in rows
    ]
    last = patches.compared(mixed)[-1]
    gains = np.array([1.0, 1.0, -2.0, 1.0])
    assert last.ours == pytest.approx(gains.mean())
    assert last.error == pytest.approx(gains.std(ddof=1) / 2)
    assert last.finding == "open"
    assert "4 quarters of the image" in last.what


def test_what_only_one_quarter_has_is_said_of_it_alone(kha):
    patches = kha.patches
    rows = made_rows(kha, LEVELS, errors_of(kha))
    rows = [r for r in rows if r["n_pass"] < 800 or r["quarter"] == "upper right"]
    found = patches.Findings(rows)
    assert found.long.quarters == ["upper right"]
    assert math.isnan(found.excess("KHA", patches.OLD, 800))
    assert found.long.excess("KHA", patches.OLD, 800) == 0.0564
    whats = [each.what for each in patches.compared(rows)][:3]
    assert [", upper right quarter" in what for what in whats] == [True, True, False]
    assert all("one image, 1 draw of the noise, without standard error" in what for what in whats)
    assert "of the first seed, upper right quarter." in patches.page(rows)
    axes = patches.figure(rows).axes
    assert "KHA, η0 = 0.05, upper right quarter" in [line.get_label() for line in axes[0].lines]


def test_page_follows_the_numbers(kha):
    text = kha.patches.page(made_rows(kha, LEVELS, errors_of(kha)))
    assert "constant gain after 800 (5.6e-02): holds." in text
    assert "KHA/et is +2.0 orders below, KHA/t +0.3." in text
    assert "with gains tuned as there, it is +1.0 orders below" in text
    assert "13.46 dB after 800 passes of the constant gain, 13.49 dB after 50 of KHA/et" in text
    assert "| KHA-SMD | automatic | 0.5 |  | diverged |" in text
    worse = kha.patches.page(made_rows(kha, LEVELS, errors_of(kha, **{"KHA/et": (0.2, 13.0)})))
    assert "constant gain after 800 (5.6e-02): **does not hold**." in worse


# ---------------------------------------------------------------------------- what is committed


def test_page_and_numbers_belong_together(kha):
    rows = kha.pages.read_rows(FOLDER / "patches.csv")
    text = kha.patches.page(rows)
    assert (FOLDER / "patches.md").read_text(encoding="utf-8") == text
    for name in ("patches.png", "patches_images.png"):
        assert f"]({name})" in text
        assert (FOLDER / name).read_bytes().startswith(b"\x89PNG")


def test_committed_numbers_are_of_a_full_run(kha):
    size, rows = kha.patches.Size(), kha.pages.read_rows(FOLDER / "patches.csv")
    found = kha.patches.Findings(rows)
    assert found.n_windows == 3844
    assert tuple(found.levels) == size.levels
    assert tuple(found.seeds) == size.seeds
    assert (found.n_passes, found.n_long) == (50, 800)
    assert tuple(found.long.quarters) == size.long


def test_figures_draw_what_was_measured(kha, small):
    pytest.importorskip("matplotlib")
    rows, images = small
    found = kha.patches.Findings(rows)
    left, middle, right = kha.patches.figure(rows).axes
    lines = {line.get_label(): line.get_ydata() for line in left.lines}
    key = "KHA/et", kha.patches.HAND
    assert lines[", ".join(key)][-1] == found.excess(*key, 4)
    assert left.get_yscale() == middle.get_xscale() == "log"
    assert list(right.lines[0].get_xdata()) == found.levels
    titles = [ax.get_title() for ax in kha.patches.image_figure(rows, images).axes]
    assert len(titles) == 8
    assert titles[4].startswith("KHA, 8 passes, ")


# ---------------------------------------------------------------------------- the walk


def test_bones_join_joints_to_their_parents(kha):
    joints = np.arange(12.0).reshape(4, 3)
    forward, up = kha.skeletons.bones(joints, np.array([-1, 0, 1, 0]))
    np.testing.assert_array_equal(forward, [5, 2, np.nan, 8, 5, np.nan, 11, 2, np.nan])
    np.testing.assert_array_equal(up, [4, 1, np.nan, 7, 4, np.nan, 10, 1, np.nan])


@pytest.fixture
def motions():
    """A made-up walk of 24 frames with three joints, and a noisy one."""
    rng = np.random.default_rng(0)
    walk = rng.random((1, 3, 3)) + np.linspace(0, 2, 24)[:, None, None] * [0, 0, 1]
    return {"original": walk, "noisy": walk + 0.1 * rng.standard_normal(walk.shape)}


def test_frames_are_drawn_over_the_original(kha, motions):
    pytest.importorskip("matplotlib")
    parents = np.array([-1, 0, 1])
    first, second = kha.skeletons.walk_figure(motions, parents, "a title", 5).axes
    assert (len(first.lines), len(second.lines)) == (5, 10)
    drawn = second.lines[-1].get_xydata()
    expected = np.column_stack(kha.skeletons.bones(motions["noisy"][-1], parents))
    np.testing.assert_array_equal(drawn, expected)


def test_animation_has_its_frames_at_the_speed_of_the_walk(kha, motions, tmp_path):
    images = pytest.importorskip("PIL.Image")
    file = tmp_path / "walk.gif"
    kha.skeletons.write_animation(file, motions, np.array([-1, 0, 1]), 80.0, every=4)
    with images.open(file) as film:
        assert film.n_frames == 6
        assert film.info["duration"] == pytest.approx(1000 * 4 / 80)
        looks = []
        for frame in range(film.n_frames):
            film.seek(frame)
            looks.append(np.asarray(film.convert("RGB"), dtype=int))
    assert np.ptp([look.sum() for look in looks]) > 0
    assert looks[0].shape[1] > looks[0].shape[0]


def test_share_removed_has_the_deviation_of_one_draw(kha):
    denoising = kha.denoising
    rows = [
        {"part": "motion", "name": name, "level": 0.01, "method": denoising.KERNEL_PAPER}
        | {"value": share, "draw": draw}
        for name, shares in {"near": (0.86, 0.87, 0.88), "far": (0.875, 0.93, 0.93)}.items()
        for draw, share in enumerate(shares)
    ]
    (made,) = denoising.compared(rows)
    assert (made.ours, made.error) == (pytest.approx(87.0), pytest.approx(1.0))
    assert made.finding == "agrees"
    assert "near with noise of 10 mm" in made.what
    assert made.what.endswith("3 draws of the noise")
    (made,) = denoising.compared([row | {"value": row["value"] - 0.02} for row in rows[:3]])
    assert made.finding == "differs"


def test_committed_walks_have_every_draw(kha):
    rows = kha.pages.read_rows(FOLDER / "denoising.csv")
    assert (FOLDER / "denoising.md").read_text(encoding="utf-8") == kha.denoising.page(rows)
    size, found = kha.denoising.Size(), kha.denoising.Findings(rows)
    shares = [found.removed(setting) for setting in found.of("motion")]
    assert len(shares) == len(size.walks) * len(size.metres)
    assert all(len(set(each)) == size.n_draws for each in shares)


def test_committed_walk_is_shown_and_small():
    text = (FOLDER / "denoising.md").read_text(encoding="utf-8")
    for name in ("denoising_walk.png", "denoising_walk.gif"):
        assert f"]({name})" in text
    film = (FOLDER / "denoising_walk.gif").read_bytes()
    assert film.startswith(b"GIF8")
    assert len(film) < 500_000


def test_cameraman_is_cut_in_the_middle(kha):
    image = load_or_skip("camera_256").image / 255
    np.testing.assert_array_equal(kha.quarters.picture(256), image)
    np.testing.assert_array_equal(kha.quarters.picture(128), image[64:192, 64:192])
