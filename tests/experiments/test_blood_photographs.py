"""Blood cells of photographs: the nucleus is found, copies share a number, bad folders are refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("PIL")

from PIL import Image

from experiments import blood_photographs as maker, datasets
from saddlesvm.data import DataError


def photograph(row, column, height=240, width=320):
    """A pale field with red cells, a dark purple nucleus, a speck as dark, and a black frame."""
    picture = np.full((height, width, 3), (220, 200, 210), dtype=np.uint8)
    rows, columns = np.mgrid[:height, :width]
    for y, x in ((40, 60), (180, 250), (60, 280)):
        picture[(rows - y) ** 2 + (columns - x) ** 2 < 900] = (200, 150, 160)
    picture[(rows - row) ** 2 + (columns - column) ** 2 < 400] = (90, 20, 120)
    picture[20:22, 200:202] = (90, 20, 120)
    picture[:, :12] = 0
    return picture


@pytest.fixture
def folder(tmp_path):
    """Two sources a class and split, the first with two copies."""
    for split in maker.SPLITS:
        for place, name in enumerate(maker.CLASSES):
            cell = tmp_path / split / name.upper()
            cell.mkdir(parents=True)
            for source, copy in ((0, 17), (0, 4), (12, 9)):
                pixels = photograph(90 + 10 * place, 120 + copy)
                Image.fromarray(pixels).save(cell / f"_{source}_{copy}.jpeg", quality=95)
            (cell / "notes.txt").write_text("no photograph")
    return tmp_path


@pytest.mark.parametrize(("row", "column"), [(120, 160), (70, 230), (200, 60)])
def test_the_nucleus_is_found_and_the_square_stays_inside(row, column):
    found = maker.nucleus(photograph(row, column))
    assert np.abs(np.subtract(found, (row, column))).max() <= 3
    image = maker.crop(photograph(row, column))
    assert image.shape == (32, 32) and image.dtype == np.uint8
    middle = np.add(np.clip(np.subtract((row, column), 60), 0, (120, 200)) * -1, (row, column)) * 32 // 120
    assert abs(int(image[tuple(middle)]) - 52) <= 1  # the nucleus in grey


def test_a_picture_without_a_nucleus_is_cut_in_its_middle():
    black = np.zeros((240, 320, 3), dtype=np.uint8)
    assert maker.nucleus(black) == (120, 160)


def test_the_file_is_what_the_experiment_reads(folder, tmp_path, capsys):
    path = tmp_path / "blood-cells.npz"
    assert maker.main([str(folder), str(path)]) == 0
    assert "24 images of 16 photographs, 12 of them to train on" in capsys.readouterr().out
    arrays = datasets.blood_cells(tmp_path)
    assert arrays["images"].shape == (24, 32, 32)
    assert arrays["label"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3] * 2
    assert arrays["split"].tolist() == [0] * 12 + [1] * 12
    assert arrays["source"].tolist() == np.repeat(np.arange(16), [2, 1] * 8).tolist()
    assert arrays["label_names"].tolist() == list(maker.CLASSES)


def test_what_is_wrong_with_the_photographs_is_said(folder, tmp_path, capsys):
    with pytest.raises(DataError, match=r"has no photographs TRAIN/EOSINOPHIL/_<source>_<copy>\.jpeg; name the folder"):
        maker.make_file(folder / "TRAIN", tmp_path / "x.npz")
    broken = folder / "TEST" / "MONOCYTE" / "_0_4.jpeg"
    broken.write_bytes(b"not a picture")
    assert maker.main([str(folder), str(tmp_path / "x.npz")]) == 2
    assert f"{broken}: is not a readable photograph" in capsys.readouterr().err
    Image.fromarray(np.zeros((100, 320, 3), dtype=np.uint8)).save(broken)
    with pytest.raises(DataError, match="is 320 x 100 pixels; at least 120 x 120 are needed"):
        maker.make_file(folder, tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()


@pytest.mark.parametrize("given", [True, False])
def test_an_experiment_without_the_file_says_how_to_make_it(given, tmp_path, monkeypatch):
    monkeypatch.setenv("SADDLESVM_CACHE", str(tmp_path))
    with pytest.raises(DataError) as told:
        datasets.blood_cells(tmp_path if given else None)
    for words in (str(tmp_path), "blood-cells.npz", "Kaggle", "--data DIR"):
        assert words in str(told.value)
    module = re.search(r"python -m (\S+)", str(told.value))[1]
    assert module == maker.__name__
