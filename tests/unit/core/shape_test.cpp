#include "tandem/core/shape.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Shape of(const std::vector<std::int64_t>& dims) {
  return Shape(std::span<const std::int64_t>(dims));
}

TEST(Shape, KnowsItsDimensions) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.num_elements(), 24);
  EXPECT_EQ(s.dim(0), 2);
  EXPECT_EQ(s.dim(-1), 4);
  EXPECT_EQ(s.product(1, 3), 12);
  EXPECT_EQ(s.product(1, 1), 1);
  EXPECT_EQ(s.to_string(), "[2,3,4]");
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_EQ((Shape{2, 0}).num_elements(), 0);
  EXPECT_THROW(s.dim(3), InvalidArgumentError);
  EXPECT_THROW(s.dim(-4), InvalidArgumentError);
}

TEST(Shape, RefusesSizesThatOverflow) {
  EXPECT_EQ((Shape{kMax}).num_elements(), kMax);
  EXPECT_EQ((Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}).num_elements(),
            std::int64_t{1} << 62);
  EXPECT_THAT(refused([] {
                Shape{std::int64_t{1} << 32, std::int64_t{1} << 31};
              }),
              HasSubstr("multiply to more than 2^63"));
  EXPECT_THROW((Shape{kMax, 2}), InvalidArgumentError);
  EXPECT_THROW((Shape{kMax, 0, 2}), InvalidArgumentError) << "a zero hides nothing";
  EXPECT_THROW((Shape{0, kMax, kMax}), InvalidArgumentError);
  EXPECT_THAT(refused([] { Shape{3, -1}; }), HasSubstr("Dimension -1 must be >= 0"));
}

TEST(Shape, GoesFromRankZeroTo254) {
  EXPECT_EQ(of(std::vector<std::int64_t>(254, 1)).rank(), 254);
  EXPECT_THROW(of(std::vector<std::int64_t>(255, 1)), InvalidArgumentError);
  EXPECT_THROW(PartialShape(std::vector<std::int64_t>(255, 1)), InvalidArgumentError);
}

TEST(Shape, IsAValueWhateverItsRank) {
  for (const int rank : {0, 1, 6, 7, 20}) {
    std::vector<std::int64_t> dims;
    for (int i = 0; i < rank; ++i) dims.push_back(i % 3 + 1);
    const Shape shape = of(dims);
    Shape copy = shape;
    EXPECT_EQ(copy, shape);
    EXPECT_EQ(copy.to_vector(), dims);
    for (const std::size_t other : {0, 6, 7, 20}) {
      Shape target = of(std::vector<std::int64_t>(other, 2));
      target = shape;
      EXPECT_EQ(target, shape) << rank << " to " << other;
      target = *&target;
      EXPECT_EQ(target, shape);
      Shape moved = of(std::vector<std::int64_t>(other, 2));
      moved = std::move(target);
      EXPECT_EQ(moved, shape);
    }
    const Shape taken = std::move(copy);
    EXPECT_EQ(taken, shape);
    // What is left may be anything, but must be safe to look at.
    const Shape left = copy;  // NOLINT: what is left is the subject
    EXPECT_EQ(left.to_vector(), copy.to_vector());
    EXPECT_EQ(left.num_elements(), left.product(0, left.rank()));
  }
}

TEST(Shape, ReportsShapesApart) {
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{1}) == (Shape{}));
  EXPECT_FALSE((Shape{0, 2}) == (Shape{2, 0}));
}

TEST(Shape, CanBeChanged) {
  Shape s{2, 3};
  s.set_dim(-1, 5);
  s.add_dim(0);
  EXPECT_EQ(s, (Shape{2, 5, 0}));
  EXPECT_EQ(s.num_elements(), 0);
  s.set_dim(2, 2);
  EXPECT_EQ(s.num_elements(), 20);
  EXPECT_THROW(s.set_dim(0, -1), InvalidArgumentError);
  EXPECT_THROW(s.set_dim(3, 1), InvalidArgumentError);
  EXPECT_THROW(s.add_dim(kMax), InvalidArgumentError);
  EXPECT_EQ(s, (Shape{2, 5, 2})) << "unchanged by what failed";
}

TEST(PartialShape, KnowsWhatIsKnown) {
  const PartialShape unknown, some{2, -1}, all{2, 3};
  EXPECT_FALSE(unknown.has_rank());
  EXPECT_EQ(unknown.rank(), -1);
  EXPECT_EQ(unknown.dim(7), -1);
  EXPECT_EQ(some.rank(), 2);
  EXPECT_EQ(some.dim(-1), -1);
  EXPECT_FALSE(some.is_fully_known());
  EXPECT_TRUE(all.is_fully_known());
  EXPECT_EQ(all.num_elements(), 6);
  EXPECT_EQ(some.num_elements(), -1);
  EXPECT_EQ(all.to_shape(), (Shape{2, 3}));
  EXPECT_THROW(some.to_shape(), FailedPreconditionError);
  EXPECT_EQ(unknown.to_string(), "<unknown>");
  EXPECT_EQ(some.to_string(), "[2,?]");
  EXPECT_EQ(PartialShape::scalar().to_string(), "[]");
  EXPECT_EQ(PartialShape::unknown_of_rank(2).to_string(), "[?,?]");
  EXPECT_THROW((PartialShape{-2}), InvalidArgumentError);
  EXPECT_THROW(some.dim(2), InvalidArgumentError);
}

// As a layer's build() picks the size of the last axis; TensorFlow's shape[-1] has None where ours
// is kUnknown.
TEST(PartialShape, TakesNoneForWhatIsNotKnown) {
  const PartialShape shape{std::nullopt, 28};
  EXPECT_EQ(shape, PartialShape({-1, 28}));
  EXPECT_EQ(PartialShape({std::nullopt}).rank(), 1);
  EXPECT_EQ(PartialShape(std::initializer_list<std::int64_t>{}).rank(), 0);
}

TEST(PartialShape, IsIndexedFromBothEnds) {
  const PartialShape some{2, -1};
  EXPECT_EQ(some[0], 2);
  EXPECT_EQ(some[-2], 2);
  EXPECT_EQ(some[-1], PartialShape::kUnknown);
  EXPECT_EQ(PartialShape()[-1], PartialShape::kUnknown);
  EXPECT_THAT(refused([&] { some[2]; }), HasSubstr("Axis 2 is out of range [-2, 2)"));
  EXPECT_THROW(PartialShape::scalar()[-1], InvalidArgumentError);
}

TEST(Shape, IsIndexedFromBothEnds) {
  const Shape shape{4, 5, 6};
  EXPECT_EQ(shape[0], 4);
  EXPECT_EQ(shape[-1], 6);
  EXPECT_EQ(shape[-3], 4);
  EXPECT_THAT(refused([&] { shape[3]; }), HasSubstr("Axis 3 is out of range [-3, 3)"));
  EXPECT_THROW(shape[-4], InvalidArgumentError);
  EXPECT_THROW(Shape()[0], InvalidArgumentError);
}

TEST(PartialShape, MergesAndRelaxes) {
  const PartialShape unknown, a{2, -1}, b{-1, 3}, c{4, 3};
  EXPECT_EQ(a.merge(b), (PartialShape{2, 3}));
  EXPECT_EQ(unknown.merge(a), a);
  EXPECT_EQ(a.merge(unknown), a);
  EXPECT_FALSE(a.is_compatible(c));
  EXPECT_TRUE(b.is_compatible(c));
  EXPECT_FALSE(a.is_compatible(PartialShape{2}));
  EXPECT_TRUE(a.is_compatible(unknown));
  EXPECT_THAT(refused([&] { a.merge(c); }), HasSubstr("[2,?] and [4,3] are not compatible"));
  EXPECT_EQ((PartialShape{2, 3}).relax({2, 4}), (PartialShape{2, -1}));
  EXPECT_EQ(a.relax({2}), unknown);
  EXPECT_EQ(a.relax(unknown), unknown);
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast(Shape{2, 3}, Shape{3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast(Shape{2, 1}, Shape{1, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast(Shape{}, Shape{4}), (Shape{4}));
  EXPECT_EQ(broadcast(Shape{0, 1}, Shape{1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast(Shape{1}, Shape{0}), (Shape{0}));
  EXPECT_THAT(refused([] { broadcast(Shape{2}, Shape{3}); }),
              HasSubstr("Incompatible shapes: [2] vs. [3]"));
  EXPECT_THROW(broadcast(Shape{0}, Shape{2}), InvalidArgumentError);
  EXPECT_THROW(broadcast(Shape{kMax, 1}, Shape{1, kMax}), InvalidArgumentError);
}

TEST(Broadcast, TakesPartlyKnownShapes) {
  const PartialShape unknown;
  EXPECT_EQ(broadcast(unknown, PartialShape{2}), unknown);
  EXPECT_EQ(broadcast(PartialShape{-1, 1}, PartialShape{3}), (PartialShape{-1, 3}));
  EXPECT_EQ(broadcast(PartialShape{-1}, PartialShape{3}), (PartialShape{3}));
  EXPECT_EQ(broadcast(PartialShape{-1}, PartialShape{1}), (PartialShape{-1}));
  EXPECT_EQ(broadcast(PartialShape{-1}, PartialShape{-1}), (PartialShape{-1}));
  EXPECT_THROW(broadcast(PartialShape{2, -1}, PartialShape{3, 1}), InvalidArgumentError);
}

TEST(NormalizeAxis, CountsFromBothEnds) {
  EXPECT_EQ(normalize_axis(1, 3), 1);
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_THAT(refused([] { normalize_axis(3, 3); }), HasSubstr("Axis 3 is out of range [-3, 3)"));
  EXPECT_THROW(normalize_axis(0, 0), InvalidArgumentError);
  EXPECT_THROW(normalize_axis(std::numeric_limits<std::int64_t>::min(), 3), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
