// Sizes that tensors announce and no machine has: an error of its own kind, soon.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

Tensor longs(const std::vector<std::int64_t>& values) { return Tensor::from(values); }
Tensor none(DType dtype, Shape shape) { return Tensor(Array(dtype, std::move(shape))); }

constexpr std::int64_t kHuge[] = {std::int64_t{1} << 40, std::int64_t{1} << 60,
                                  std::int64_t{1} << 62, INT64_MAX};

template <class F>
void expect_refused(F f) {
  for (const std::int64_t size : kHuge) {
    SCOPED_TRACE(size);
    try {
      f(size);
      ADD_FAILURE() << "it was believed";
    } catch (const ResourceExhaustedError&) {
    } catch (const InvalidArgumentError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another error: " << error.what();
    }
  }
}

const Tensor kIndices{{std::int64_t{0}, std::int64_t{0}}};
const Tensor kSeven = longs({7});

TEST(AnnouncedSizes, OfCrossedFeatures) {
  expect_refused([](std::int64_t rows) {
    raw_op("SparseCross", {kIndices, kSeven, longs({rows, 2})},
           {{"N", std::int64_t{1}},
            {"hashed_output", true},
            {"num_buckets", std::int64_t{10}},
            {"hash_key", std::int64_t{1}},
            {"out_type", DType::kInt64},
            {"internal_type", DType::kInt64},
            {"sparse_types", std::vector<DType>{DType::kInt64}},
            {"dense_types", std::vector<DType>{}}});
  });
  const AttrMap types = {{"N", std::int64_t{1}},
                         {"sparse_types", std::vector<DType>{DType::kInt64}},
                         {"dense_types", std::vector<DType>{}}};
  expect_refused([&](std::int64_t rows) {
    raw_op("SparseCrossV2", {kIndices, kSeven, longs({rows, 2}), Tensor(std::string("_"))}, types);
  });
  expect_refused([&](std::int64_t rows) {
    raw_op("SparseCrossHashed",
           {kIndices, kSeven, longs({rows, 2}), Tensor(std::int64_t{10}), Tensor(false),
            longs({1, 2})},
           types);
  });
  // Rows that have nothing are rows.
  expect_refused([](std::int64_t rows) {
    raw_op("SparseCrossV2", {none(DType::kInt64, Shape{rows, 0}), Tensor(std::string("_"))},
           {{"N", std::int64_t{0}},
            {"sparse_types", std::vector<DType>{}},
            {"dense_types", std::vector<DType>{DType::kInt64}}});
  });
}

TEST(AnnouncedSizes, OfRowsToBeFilled) {
  expect_refused([](std::int64_t rows) {
    raw_op("RaggedFillEmptyRows", {longs({0}), kSeven, Tensor(rows), Tensor(std::int64_t{1})}, {});
  });
  expect_refused([](std::int64_t rows) {
    raw_op("SparseFillEmptyRows", {kIndices, kSeven, longs({rows, 2}), Tensor(std::int64_t{1})},
           {});
  });
}

TEST(AnnouncedSizes, OfRaggedArrays) {
  const Tensor values{1.0f, 2.0f, 3.0f};
  const auto to_tensor = [&](std::int64_t rows, std::int64_t asked) {
    return raw_op("RaggedTensorToTensor", {longs({asked}), values, Tensor(0.0f), Tensor(rows)},
                  {{"row_partition_types", std::vector<std::string>{"FIRST_DIM_SIZE"}}})[0];
  };
  expect_refused([&](std::int64_t rows) { to_tensor(rows, -1); });
  expect_refused([&](std::int64_t rows) { to_tensor(3, rows); });
  // TensorFlow reads past the values.
  EXPECT_THROW(to_tensor(5, -1), InvalidArgumentError);
  EXPECT_THROW(to_tensor(std::int64_t{1} << 62, 4), InvalidArgumentError);
  EXPECT_EQ(to_tensor(std::int64_t{1} << 62, 3).to_vector<float>(), (std::vector<float>{1, 2, 3}));
  expect_refused([&](std::int64_t rows) {
    raw_op("RaggedGather", {longs({0, 2, 3}), values, none(DType::kInt64, Shape{rows, 0})},
           {{"OUTPUT_RAGGED_RANK", std::int64_t{2}}});
  });
  expect_refused([&](std::int64_t size) {
    raw_op("RaggedRange", {Tensor(std::int64_t{0}), Tensor(size), Tensor(std::int64_t{1})}, {});
  });
}

}  // namespace
}  // namespace tandem
