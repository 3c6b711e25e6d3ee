"""Mutants that no test can notice: file, the line before, the line after, and why."""

from __future__ import annotations

STEPS = "PARABOLA_STEP, PARABOLA_REACH = 0.01, {}  # spacing of three factors; steps below them where a top is trusted"
ASSEMBLED = "ASSEMBLING = {}  # roundings between the sums and a certificate in the user's form"
DUAL_ZERO = "if self.dual in (0.0, -math.inf) or self.primal > 0.0 {} self.dual:"
AT_ZERO = "if dual - below {} sums.at_zero <= primal:  # losses are at least zero, but a kernel may be indefinite"
NEAR_TOP = "if factor {} PARABOLA_REACH * PARABOLA_STEP:"
TOP_OF_THREE = "factor = {} - PARABOLA_STEP * (1.0 + 0.5 * (one - three) / bend) if bend > 0.0 else float(one < three)"
PRECISION = (
    "problem: Problem, alpha: np.ndarray, pull: np.ndarray, precision: float = {}, terms: Pointwise | None = None"
)
EVALUATE = "def evaluate(problem: Any, point: Point, {}, exact: bool = True, given_offset: bool = False) -> Evaluation:"
ROOM = "return Room(float(way.sum()), pulled, float(loss_sums(terms, rows, np.zeros(rows.size), {}, high)[3]))"
AROUND = "return float(loss_sums(terms, problem.members, self.margins(), added {} move, nothing)[0])"
LINE = "factor = 1.0 - PARABOLA_STEP * (1.0 + 0.5 * (one - three) / bend) if bend > 0.0 else float(one {} three)"

AT_ONCE = "AT_ONCE = {}  # rows per list of those with a coefficient"
OWNER = "self.owner = np.full(self.capacity, {})"
PANELS = "BLOCK, PANEL = {}, {}  # rows, and columns, of the features that are computed at once"
AT_BOUND = "left, right = slopes(terms.loss, a, {}, terms.y[i], weight_of(terms.weights, i))"
MAPPED = "MAPPED_VALUES = {}  # of rows that are mapped from files, whose pages count as memory while they are used"
PARTS = "def parts_of_rows(X: Any, least: int = {}) -> Iterator[slice]:"
ADDING = (
    "ADDING = {}  # stored values of a part per feature, at least: adding up the parts' vectors takes little time then"
)
NO_PLACE = "return Part(block.X, np.empty(0, dtype=np.int32), slice({}), first, last).among(self.members)"
EDGED = "return 0.5 * self.width * b * b / s - b if 0.0 <= b {} s * EDGE else INF"
ALIGNED = 'bfloat16 = np.dtype([("bfloat16", "<u2")], align={})'
WIDENED = "AT_ONCE = {}  # bfloat16 numbers that are widened at once, by way of a copy"
BUFFERS = "return self.thread.submit(self._read, chunks, list(judged), self.buffers[{}])"
DENSE_ROOM = "shapes = [(most_rows, *columns[{}].array.shape[1:])]"

BOX = "(least, most), (low, high) = loss.bounds({}, 1.0), loss.bounds(1.0, 1.0)"
SOFTMAX = "SOFTMAX_UNITS = {}  # roundings of a probability beside those of the sum over the classes"
OF_CLASSES = "return LossSizes(1.0, math.inf, rows + {}, gamma(rows + 8.0))"
EMPTY = "NOT_KEPT, NO_DUALS = np.empty((0, 0), dtype=np.float32), np.empty({})"
TURNED = "all_turned = np.empty(kept.shape if by_columns else {}, dtype=dtype)"
SIZED = "SIZED_VALUES = {}  # variables of a slice of rows"
SCORES = "def _scores_of(problem: JointProblem, w: np.ndarray, given_offset: bool = {}) -> Scores:"
LARGEST = "return -np.partition(-hinges, count - {}, axis=1)[:, :count]"
PLAIN_FIELDS = "positive: float = {}"
UNITS = "drift, shift = gamma(rows.rows + {}) * C * sizes.pulled, C * move.pulled"
LAST = "bent[-1] = 0.0 if self.intercept.constrained else self.last.curvature(float(v[-{}]))"
ENDS = "ends = (lambda offset: slope(offset) if offset else still {} tilt), min(near, far), max(near, far)"
SEARCHED = "LARGEST, SMALLEST = {}**60, {}**-{}  # of C, relative to the one without an intercept"
IN_ARRAYS = "left, right = methods_of(terms.loss).slopes(terms.loss, a, {}, y, s)"
HEAVY = "heavy = a {} 0.0 if excess > 0.0 else a < 0.0"
SHARED = "a[heavy] *= max(1.0 - abs(excess) / divisor, 0.0) if divisor > 0.0 else {}"
HALVED = "halved = not low <= t + move {} high or abs(move) > 0.5 * moved"
FIRST_MOVE = "moved = {} * (high - low)"
FEW_VALUES = "FEW_VALUES = {}  # of the radial kernel, up to which NumPy's exponential is quick enough"
ENDS_AHEAD = "ENDS_BYTES, ENDS_LEAST = {}, {}"
HALF_AHEAD = "HALF_MOST, LONG, LONG_AHEAD, ROW_AHEAD, SHORT = 2048, 2048, 2, {}, 512"
FINITE = "return all(math.isfinite(end) for y in ({}, {}) for end in loss.bounds(y, {}))"
PULLED = "if pulled.size > {} and alpha[i] != 0.0:"
WHOLE_AHEAD = "WHOLE_BYTES, WHOLE_MOST, WHOLE_LEAST = 6144, {}, 256"

EXCUSED: dict[tuple[str, str, str], str] = {
    (file, before, after): why
    for file, reasons in {
        "certificate": {
            "more roundings than are done, as before": [
                (ASSEMBLED.format(32), ASSEMBLED.format(other)) for other in (31, 33)
            ],
            "a dual objective of zero has been treated by then": [(DUAL_ZERO.format(">"), DUAL_ZERO.format(">="))],
            "both sides of an equality are the same bound": [(AT_ZERO.format("<"), AT_ZERO.format("<="))],
            "all rows in their order are the rows themselves": [
                (
                    "rows[problem.members] if rows.shape[0] > problem.members.size else rows,",
                    "rows[problem.members] if rows.shape[0] >= problem.members.size else rows,",
                )
            ],
            "a list of one certificate ends with its first": [("return certificates[0]", "return certificates[ -1]")],
            "every caller names these arguments": [(EVALUATE.format("*"), EVALUATE.format("/"))],
        },
        "responses": {
            "the sizes of conjugates do not depend on the margins": [
                (ROOM.format("0.0"), ROOM.format(other)) for other in ("1.0", "-1.0")
            ],
            "a protocol is for type checkers": [(" @property", "")],
            "a sum is asked for on both sides, so that which comes first is the same": [
                (AROUND.format("+"), AROUND.format("-"))
            ],
            "a factor that is not near 1 has been left to Brent's method by then": [
                ("return most * min(max(factor, 0.0), 1.0)", "return most * min(max(factor, -1.0), 1.0)")
            ],
            "where Brent's method takes over is a choice of speed": [
                (TOP_OF_THREE.format("1.0"), TOP_OF_THREE.format("0.0")),
                *((NEAR_TOP.format("< 1.0 -"), NEAR_TOP.format(other)) for other in ("<= 1.0 -", "< 2.0 -", "< 1.0 +")),
                *((STEPS.format("5.0"), STEPS.format(other)) for other in ("6.0", "4.0")),
            ],
            "SciPy's search for a factor ends a few steps later": [
                (PRECISION.format("1e-4"), PRECISION.format("-0.9999"))
            ],
            "one factor is as good as the other where both duals are equal": [
                (
                    "return float(found.x) if found.fun < one else most",
                    "return float(found.x) if found.fun <= one else most",
                ),
                (LINE.format("<"), LINE.format("<=")),
                (
                    "return min(max(0.5 - 0.5 * whole / bend, 0.0), 1.0) if bend > 0.0 else float(whole < 0.0)",
                    "return min(max(0.5 - 0.5 * whole / bend, 0.0), 1.0) if bend > 0.0 else float(whole <= 0.0)",
                ),
            ],
        },
    }.items()
    for why, pairs in reasons.items()
    for before, after in pairs
} | {
    (file, before, after): why
    for why, triples in {
        "how much is done at once is a choice of speed": [
            (file, line.format("2**13"), line.format(other))
            for file, line in (("rows/layouts", AT_ONCE), ("rows/small_types", WIDENED))
            for other in ("2** 14", "2** 12", "3**13", "1**13")
        ],
        "only compiled code reads how a record of one number is aligned": [
            ("rows/small_types", ALIGNED.format("True"), ALIGNED.format("False"))
        ],
        "how many features are computed at once is a choice of speed": [
            ("rows/landmarks", PANELS.format(*ours), PANELS.format(*others))
            for ours, others in (((4096, 256), (4096, 257)), ((4096, 256), (4096, 255)), ((4096, 256), (4097, 256)))
        ],
        "how many threads work, and on how many parts, is a choice of speed: the sums are the same": [
            ("rows/passes", before, after)
            for before, after in (
                (ADDING.format("16.0"), ADDING.format("15.0")),
                (ADDING.format("16.0"), ADDING.format("17.0")),
                ("if self.threads > 1:", "if self.threads > 2:"),
                ("if self.threads > 1:", "if self.threads <= 1:"),
                ("if self.threads == 1:", "if self.threads == 0:"),
                ("threads: int = 1", "threads: int = 2"),
            )
        ],
        "how many classes meet a value at once is a choice of speed": [
            ("rows/class_rows", "while q + 4 <= count:", "while q + 5 <= count:")
        ],
        "`among` puts another place in the place of this one": [
            ("rows/passes", NO_PLACE.format("0, 0"), NO_PLACE.format(other)) for other in ("0, 1", " 1, 0")
        ],
        "the edge is some roundings above a bound, which no variable has": [
            ("margin_losses", EDGED.format("<="), EDGED.format("<"))
        ],
        "how many values are read at once is a choice of memory": [
            ("rows/scores", MAPPED.format("500_000"), MAPPED.format(other)) for other in ("499999", "500001")
        ],
        "a part is far larger than one value or two": [
            ("rows/scores", PARTS.format("1"), PARTS.format(other)) for other in ("2", "0")
        ],
        "whether a variable is at a bound does not depend on the margin": [
            ("intercepts", AT_BOUND.format("0.0"), AT_BOUND.format(other)) for other in ("-1.0", "1.0")
        ],
        "two buffers take turns, whichever is the first": [
            ("rows/files", BUFFERS.format("0"), BUFFERS.format(other)) for other in (" -1", " 1")
        ],
        "any negative number stands for no owner": [
            ("rows/kernel_rows", OWNER.format("-1"), OWNER.format(other)) for other in ("- 2",)
        ],
        "which rows are fetched ahead, and how, is a choice of speed": [
            ("rows/prefetch", before, after)
            for before, after in (
                (ENDS_AHEAD.format(32768, 4), ENDS_AHEAD.format(32768, 3)),
                (ENDS_AHEAD.format(32768, 4), ENDS_AHEAD.format(32767, 4)),
                (HALF_AHEAD.format(6), HALF_AHEAD.format(7)),
                (WHOLE_AHEAD.format(16), WHOLE_AHEAD.format(15)),
                ("if width * size >= SHORT:", "if not width * size >= SHORT:"),
                (" @inlined", ""),
            )
        ],
        "NumPy's exponential and the other one have the same values": [
            ("rows/kernels", FEW_VALUES.format("2**15"), FEW_VALUES.format("2** 14"))
        ],
        "whether a variable is at a bound does not depend on the margin, in arrays either": [
            ("terms", IN_ARRAYS.format("0.0"), IN_ARRAYS.format("1.0"))
        ],
        "a variable of zero adds nothing to a sum, and stays zero": [
            ("terms", HEAVY.format(">"), HEAVY.format(">=")),
            ("terms", SHARED.format("1.0"), SHARED.format("2.0")),
        ],
        "the search halves a step to the end of its interval instead, and ends at the same place": [
            ("arithmetic", HALVED.format("<="), HALVED.format("<")),
            ("arithmetic", FIRST_MOVE.format("2.0"), FIRST_MOVE.format("1.0")),
        ],
        "how far a crossing is searched for is a choice": [
            ("first_weight", SEARCHED.format("2.0", "2.0", "60"), SEARCHED.format(*others))
            for others in (("3.0", "2.0", "60"), ("2.0", "3.0", "60"), ("2.0", "2.0", " 61"))
        ],
        "the sign at an end of the interval is the same, and with it the root": [
            ("first_weight", ENDS.format("-"), ENDS.format("+"))
        ],
        "whether bounds are finite depends on neither the label nor the weight": [
            ("loss", FINITE.format("-1.0", "1.0", "1.0"), FINITE.format(*others))
            for others in (("-1.0", "1.0", "2.0"), ("-1.0", "2.0", "1.0"), ("- 0.0", "1.0", "1.0"))
        ],
        "only free intercepts ask for the sums of both signs, and they give them": [
            ("rounding", PLAIN_FIELDS.format("0.0"), PLAIN_FIELDS.format("1.0"))
        ],
        "more roundings than are done, in a pull as well": [("proven_sums", UNITS.format("8.0"), UNITS.format("7.0"))],
        "a penalty whose curvature depends on the pull holds a square, so that the intercept has half a square": [
            ("regularizer", LAST.format("1"), LAST.format(" 2"))
        ],
        "plain Python adds nothing to an empty array; with checked bounds, a test of these sums fails": [
            ("sums", PULLED.format("0"), PULLED.format("-1"))
        ],
        "there is one sum left": [
            ("short_sums", "return sums[0], units", "return sums[ -1], units"),
        ],
        "the largest hinges are on one side of the next one, too": [
            ("joint_losses", LARGEST.format("1"), LARGEST.format("0"))
        ],
        "labels are -1 and 1, and the bounds of other losses do not depend on the target": [
            ("terms", BOX.format("-1.0"), BOX.format("- 2.0")),
            ("terms", "ahead = y > 0.0", "ahead = y >= 0.0"),
            ("terms", "ahead = y > 0.0", "ahead = y > -1.0"),
        ],
        "more roundings than are done, in a softmax and in a pull of classes": [
            ("multinomial", SOFTMAX.format("800.0"), SOFTMAX.format("799.0")),
            ("crammer_singer", OF_CLASSES.format("8.0"), OF_CLASSES.format("9.0")),
        ],
        "an array without a value is one, whatever its shape": [
            *(("multinomial", EMPTY.format("(0, 0)"), EMPTY.format(other)) for other in ("(0, 1)", "( 1, 0)")),
            ("multinomial", TURNED.format("(0, 0)"), TURNED.format("( 1, 0)")),
        ],
        "how many variables are sized at once is a choice of memory": [
            ("crammer_singer", SIZED.format("2**18"), SIZED.format(other)) for other in ("2** 19", "3**18")
        ],
        "the intercepts of classes are judged as they are given": [
            ("crammer_singer", SCORES.format("False"), SCORES.format("True"))
        ],
        "there is one column here": [
            ("rows/files", DENSE_ROOM.format("0"), DENSE_ROOM.format(" -1")),
        ],
    }.items()
    for file, before, after in triples
}
