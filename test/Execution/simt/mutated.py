"""Kernels that mutants.py puts mistakes into, and the mistakes that no run can tell from the kernel."""

# A whole GPU, and parts of one: small shapes need several blocks on them, and several accesses of a thread. On the tiny
# one rows are longer than shared memory, on the one of few registers short rows do not stay in them.
WHOLE, PART, PARTS, TINY = "chip=sm_90", "chip=sm_90 sms=1", "chip=sm_90 sms=2", "chip=sm_90 shared-bytes=1024"
FEW = "chip=sm_90 registers=1024"

# Mistakes in products of matrices, and in the order of their tiles. What else these kernels have is in others, too.
BARRIERS = ("drop-barrier",)
SUMS = ("drop-accumulator", "exchange-accumulators")
PRODUCTS = (*SUMS, "shift-fragment", "transpose-fragment", "exchange-fragments", "exchange-rows",
            "exchange-parts", "exchange-operands", "drop-product")
BF16 = "dtype='bf16', weight_roundings=1"

# For every kind of kernel, calls of tests in ../host/kernels and the device that their kernels are for, and where they are
# not all, which mistakes.
KINDS = {
    "elementwise": [
        ("test_cluster.test_elementwise(65)", WHOLE),
        ("test_cluster.test_elementwise(8200)", PART),
        ("test_cluster.test_bias_and_comparison(7, 16)", WHOLE),
        ("test_cluster.test_guarded(5)", WHOLE),
    ],
    "row reduction": [
        ("test_cluster.test_softmax(9, 100)", WHOLE),
        ("test_cluster.test_softmax(5, 128)", WHOLE),
        ("test_cluster.test_softmax(2, 5000)", WHOLE),
        ("test_cluster.test_softmax(6, 600)", PART),
        ("test_cluster.test_softmax(2, 700)", FEW),
        ("test_cluster.test_layer_norm(5, 100)", WHOLE),
        ("test_cluster.test_layer_norm(6, 768)", WHOLE),
        ("test_cluster.test_cross_entropy(101)", WHOLE),
        ("test_cluster.test_cross_entropy(700)", FEW),  # loops, and what they need not ask away from the class
        ("test_cluster.test_reduce_all(4097, np.float32, 'f32')", WHOLE),
    ],
    "row and column reduction": [
        ("test_cluster.test_layer_norm_backward(4, 8, 48)", WHOLE),
        ("test_cluster.test_layer_norm_backward(5, 7, 128)", WHOLE),
        ("test_cluster.test_layer_norm_backward(2, 12, 300)", WHOLE),  # three teams of two warps
        ("test_cluster.test_layer_norm_backward(4, 7, 100)", FEW),
        ("test_cluster.test_layer_norm_backward(2, 3, 200)", FEW),
        ("test_cluster.test_layer_norm_backward(2, 3, 300)", FEW),
        ("test_cluster.test_column_centre_then_rows(5, 7, 128)", WHOLE),
    ],
    "reduction of outer dims": [
        ("test_cluster.test_batch_norm(4, 3, 10)", WHOLE),
    ],
    "columns of many rows": [
        ("test_cluster.test_columns_over_many_rows(3, 256, 64)", WHOLE),
        ("test_cluster.test_columns_over_many_rows(2, 81, 5)", WHOLE),
    ],
    "transpose": [
        ("test_cluster.test_transposed_operand(40, 33)", WHOLE),
        ("test_cluster.test_batched_transpose(2, 40, 33, 1)", WHOLE),
    ],
    "random numbers": [
        ("test_random.test_uniform(16, 5, 1, 0, 2, 3)", WHOLE),
    ],
    "gather": [
        ("test_movement.test_gather_rows(65, 16, 24, np.int64)", WHOLE),
        ("test_movement.test_gather_rows(1000, 100, 64, np.int32)", PART),
        ("test_movement.test_gather_rows_of_several_tables()", WHOLE),
    ],
    "scatter": [
        ("test_movement.test_scatter_many(760, 4096, 1, 1.0)", PART),   # ids and rows for every thread
        ("test_movement.test_scatter_many(256, 60, 16, 1.0)", PART),    # lists that are full
        ("test_movement.test_scatter_many(5000, 40, 12, 0.02)", PARTS), # more hits than the list of a block holds
    ],
    "groups of rows": [
        ("test_movement.test_grouped_gemm(5, 3, 7, 2, False)", WHOLE),
        ("test_movement.test_grouped_gemm(5, 3, 7, 2, True)", WHOLE),
        ("test_movement.test_grouped_outer(5, 3, 7, 2)", WHOLE),
    ],
    "sort": [
        ("test_movement.test_sort(5, 33, np.float32, False)", WHOLE),
        ("test_movement.test_sort(6, 64, np.int64, True)", WHOLE),
        ("test_movement.test_sort(2, 200, np.float32, False)", TINY),
    ],
    "copy": [
        ("test_movement.test_copy(6)", WHOLE),
        ("test_movement.test_copy(50)", WHOLE),
    ],
    "flat shard": [
        ("test_movement.test_segmented(3)", WHOLE),
        ("test_movement.test_segmented_of_many_blocks(200_000, 3)", PART),
        ("test_movement.test_segment_norms(1, 3)", WHOLE),
        ("test_movement.test_segment_norms_of_long_segments(35_000)", WHOLE),
    ],
    "attention": [
        ("test_attention.run_case((1, 2, 2, 33, 33, 16, 16, True))", WHOLE),
        ("test_attention.run_case((1, 4, 2, 100, 70, 20, 24, False))", WHOLE),
    ],
    "attention on tensor cores": [
        (f"test_attention.run_case((1, 1, 1, 32, 32, 16, 16, False), {BF16})", WHOLE, PRODUCTS),
        (f"test_attention.run_case((1, 1, 1, 32, 32, 32, 16, False), {BF16})", WHOLE, SUMS),        # of several products
        (f"test_attention.run_case((1, 1, 1, 70, 70, 16, 16, False), {BF16})", PART, BARRIERS),     # several tiles, warps
    ],
    "bf16": [
        ("test_narrow_floats.test_row_sums_of_a_transposed_operand(17, 17)", WHOLE),
    ],
}

# Mutants that no run can tell from the kernel: (pattern of kind, test, name and mutant, reason).
EQUIVALENT = [
    (r"^attention: .*\[0\]: .*: shrink-buffer at op 0,",
     "shared memory ends with the padding of a tile's last row, 16 bytes that nobody touches"),
    (r"^attention: .*: change-comparison .* slt, %\d+, %c(33|70|100)_i64",
     "a row behind the last is not stored, or its score is masked and its tile zero, of which one is enough"),
    (r"^attention: .*20, 24, False.*: change-comparison .* slt, %\d+, %c(20|24)_i64",
     "columns of a tile behind its last are in no product that is stored"),
    (r"^attention: .*33, 33.*\[1\].*: shift-index at op 476, ",
     "of the third sixteen queries of a tile one is there, and what lies behind it is the last query's again"),
    (r"^attention: .*33, 33.*\[1\].*: change-comparison at op 495, .* arith.cmpf oeq",
     "scores of queries behind the last are -inf, whatever is subtracted"),
    (r"^attention: .*\[1\].*: shift-index at op (639|736), .*%c(4288|6848)_i64\]",
     "nothing lies behind the last buffer of a block of queries, which needs less memory than one of keys"),
    (r"^(transpose|copy): .* change-comparison at op \d+, .* slt, %\d+, %c(40|50)_i64",
     "a thread beside the tile loads an element of the operand's next row into a place of the tile that nobody reads"),
    (r"^copy: .* change-comparison at op (23|27|49), .* slt, %\d+, %c(2|9|16)_i64",
     "the block behind those of a piece has no elements of it"),
    (r"^row reduction: .*cross_entropy\(700\).* change-comparison .* ult, %\d+, %c4_i64",
     "an access that is behind the class asks for it and does not find it"),
    (r"^row and column reduction: .*\(4, 8, 48\).* change-comparison at op 180, .* eq, %\d+, %c0_i64",
     "the second of two teams stores the sums that the first has, too"),
    (r"^(row and column reduction|flat shard): .*(12, 300|segment_norms).* change-comparison .* slt, %\d+, %c0_i64",
     "rounding down is other for 0 alone, and a divisor less one from 0 leaves the quotient 0"),
    (r"^flat shard: .*test_segmented\(3\).* at op (26|33),",
     "the search that ends a segment early starts with one that has no elements in the block"),
    (r"^flat shard: .*test_segmented\(3\).* at op 34,", "no block starts behind the last segment"),
    (r"^flat shard: .*test_segmented\(3\).* at op 40,", "the search has found the end before its last turn"),
    (r"^scatter: .*\((760|5000), .*: shrink-buffer at op 2\d,",
     "the buffer in front is not full, or not in use at the same time"),
    (r"^scatter: .*\(256, .*: shrink-buffer at op (19|2\d),.*%c(3312|3344)_i64",
     "the buffer in front is not in use at the same time"),
    (r"^scatter: .*\(256, .* at op 2[3-9]\d, .*%c[1-7]_i64|^scatter: .*\(5000, .* at op 4[4-9]\d, .*%c[0-7]_i64",
     "the warp owns no rows: its count is 0, and it uses nothing of the scan"),
    (r"^scatter: .*\(256, .*(change-shuffle at op [5-8]\d,|shift-index at op (9|1\d)\d, .*%c[0-6]_i64\])",
     "every id is a hit, so all threads and warps have the same count"),
    (r"^scatter: .*\(5000, .* change-comparison at op (59|61), ",
     "a hit behind the last id, or of a row behind the last, is one more of the block that has too many to list"),
    (r"^scatter: .*\(5000, .* change-comparison .* slt, %\d+, %c2048_i64",
     "one hit more than a list holds is only written where the list is not used"),
    (r"^scatter: .*\(5000, .* change-comparison at op 66[12], ",
     "the thread behind the last column has none, as is asked twice"),
    (r"^sort: .*test_sort\((5, 33|2, 200).* shorten-loop at op (111|103)",
     "the last pair of a row compares its last place up to a power of two, which rows of 33 and 200 have not"),
    (r"^sort: .* change-comparison at op (75|79|83), %\d+ = arith.cmp",
     "in a flip the second entry comes from a later place than the first, and equal or not never goes before it"),
]
