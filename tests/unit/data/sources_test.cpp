#include <gmock/gmock.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

TEST(FromTensorSlices, GivesRowsOfAllComponents) {
  const auto ds = from_tensor_slices({Tensor{{1, 2}, {3, 4}, {5, 6}}, Tensor{7, 8, 9}});
  EXPECT_EQ(ds.cardinality(), 3);
  EXPECT_EQ(to_string(ds.element_spec()), "(int32[2], int32[])");
  EXPECT_EQ(text(ds), "[1 2]; 7 | [3 4]; 8 | [5 6]; 9");
}

TEST(FromTensorSlices, SharesMemoryWithItsTensors) {
  const Tensor all{{1.0, 2.0}, {3.0, 4.0}};
  const Element second = [&] {
    auto it = from_tensor_slices(all).iterator();
    it.next();
    return it.next();
  }();
  EXPECT_EQ(second[0].data<float>().data(), all.data<float>().data() + 2);
}

TEST(FromTensorSlices, TakesStringsEmptyAndZeroSizedRows) {
  EXPECT_EQ(text(from_tensor_slices(Tensor{"a", "bc"})), "b'a' | b'bc'");
  EXPECT_EQ(text(from_tensor_slices(Tensor(Array(int32, {0, 2})))), "");
  const auto hollow = from_tensor_slices(Tensor(Array(int32, {2, 0})));
  EXPECT_EQ(text(hollow), "[] | []");
  EXPECT_EQ(hollow.batch(2).iterator().next().at(0).shape(), (Shape{2, 0}));
}

TEST(FromTensorSlices, RefusesWhatHasNoCommonRows) {
  EXPECT_NE(message_of_thrown<InvalidArgumentError>([] {
              from_tensor_slices(Tensor(1));
            }).find("Unbatching a tensor is only supported for rank >= 1"),
            std::string::npos);
  EXPECT_NE(message_of_thrown<InvalidArgumentError>([] {
              from_tensor_slices({Tensor{1, 2}, Tensor{1, 2, 3}});
            }).find("Dimensions 2 and 3 are not compatible"),
            std::string::npos);
  EXPECT_THROW(from_tensor_slices(std::vector<Tensor>{}), InvalidArgumentError);
  EXPECT_THROW(from_tensor_slices(Tensor()), FailedPreconditionError);
}

TEST(FromTensors, GivesOneElement) {
  const auto ds = from_tensors({Tensor{1, 2}, Tensor(3.5f)});
  EXPECT_EQ(ds.cardinality(), 1);
  EXPECT_EQ(text(ds), "[1 2]; 3.5");
  EXPECT_THROW(from_tensors(std::vector<Tensor>{}), InvalidArgumentError);
}

TEST(Range, CountsUpAndDown) {
  EXPECT_EQ(numbers(range(4)), upto(4));
  EXPECT_EQ(numbers(range(2, 9, 3)), (std::vector<std::int64_t>{2, 5, 8}));
  EXPECT_EQ(numbers(range(5, 0, -2)), (std::vector<std::int64_t>{5, 3, 1}));
  EXPECT_EQ(numbers(range(5, 5)), upto(0));
  EXPECT_EQ(range(2, 9, 3).cardinality(), 3);
}

TEST(Range, StaysWithinSixtyFourBits) {
  EXPECT_EQ(numbers(range(INT64_MAX - 3, INT64_MAX, 2)),
            (std::vector<std::int64_t>{INT64_MAX - 3, INT64_MAX - 1}));
  EXPECT_EQ(numbers(range(INT64_MIN, INT64_MAX, INT64_MAX)),
            (std::vector<std::int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(numbers(range(INT64_MAX, INT64_MIN, INT64_MIN)),
            (std::vector<std::int64_t>{INT64_MAX, -1}));
  EXPECT_THROW(range(INT64_MIN, INT64_MAX), InvalidArgumentError);
  EXPECT_EQ(message_of_thrown<InvalidArgumentError>([] { range(0, 5, 0); }),
            "step must be a non-zero integer.");
}

Dataset counted_to(std::int32_t end) {
  return from_generator(
      [end] {
        return [i = 0, end](Element& out) mutable {
          if (i == end) return false;
          out = {Tensor(i++)};
          return true;
        };
      },
      {{int32, PartialShape{}}});
}

TEST(FromGenerator, BeginsAgainEachTime) {
  const auto ds = from_generator(
      [] {
        return [i = 0](Element& out) mutable {
          out = {Tensor(i)};
          return i++ < 3;
        };
      },
      {{int32, PartialShape::scalar()}});
  EXPECT_EQ(text(ds), "0 | 1 | 2");
  EXPECT_EQ(text(ds), "0 | 1 | 2");
  EXPECT_EQ(ds.cardinality(), kUnknown);
  EXPECT_EQ(text(counted_to(2)), "0 | 1");
}

TEST(FromGenerator, ChecksWhatItGives) {
  const auto wrong_dtype = from_generator(
      [] {
        return [](Element& out) {
          out = {Tensor(1.5f)};
          return true;
        };
      },
      {{int32, PartialShape::scalar()}});
  const auto message =
      message_of_thrown<InvalidArgumentError>([&] { wrong_dtype.iterator().next(); });
  EXPECT_NE(message.find("dtype float where an element of dtype int32 was expected"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("in from_generator, element 0"), std::string::npos) << message;
  EXPECT_THROW(from_generator(nullptr, {{int32, PartialShape::scalar()}}), InvalidArgumentError);
  EXPECT_THROW(from_generator([] { return Generator(); }, {}), InvalidArgumentError);
}

TEST(FromGenerator, GoesOnAfterAnException) {
  const auto ds = from_generator(
      [] {
        return [i = std::int64_t{0}](Element& out) mutable {
          if (i++ == 1) throw std::runtime_error("user text");
          out = {Tensor(i)};
          return i < 4;
        };
      },
      {{int64, PartialShape::scalar()}});
  auto it = ds.iterator();
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 1);
  EXPECT_EQ(message_of_thrown<UnknownError>([&] { it.next(); }),
            "user text\n\tin from_generator, element 1");
  EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{3}));
}

// Pipelines of that depth can be iterated and observed; of any depth the stack would not do.
TEST(Pipelines, HaveABoundedDepth) {
  for (const bool concatenate : {false, true}) {
    Dataset ds = range(3);
    for (int i = 1; i < 2'000; ++i) ds = concatenate ? ds.concatenate(range(0)) : ds.skip(0);
    EXPECT_EQ(numbers(ds), upto(3));
    auto it = ds.iterator({.observe = true});
    EXPECT_EQ(numbers(it), upto(3));
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { ds.take(1); }),
                ::testing::HasSubstr("A pipeline can have 2000 nested stages"));
  }
}

}  // namespace
}  // namespace tandem::data
