// What is asked of a dataset as a whole: reduce, get_single_element, unique, assert_cardinality,
// printing, and range-for over an iterator.

#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "tandem/data/structure.h"
#include "tandem/ops/operators.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t number(const Tensor& x) { return x.item<std::int64_t>(); }
Tensor zero() { return Tensor(std::int64_t{0}); }
template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Reduce, FoldsElementsIntoAState) {
  const auto sum = [](Tensor state, Tensor x) { return state + x; };
  EXPECT_EQ(number(range(5).reduce(zero(), sum)), 10);
  EXPECT_EQ(number(range(0).reduce(zero(), sum)), 0);
  const auto pairs = zip({range(1, 4), range(4, 7)});
  EXPECT_EQ(number(pairs.reduce(zero(), [](Tensor s, Tensor x, Tensor y) { return s + x * y; })),
            32);
  const Element both = range(5).reduce({zero(), zero()}, [](Tensor n, Tensor s, Tensor x) {
    return std::pair(n + std::int64_t{1}, s + x);
  });
  EXPECT_EQ(number(both.at(0)), 5);
  EXPECT_EQ(number(both.at(1)), 10);
  const Element last = pairs.reduce({zero(), zero()},
                                    [](const Element&, const Element& element) { return element; });
  EXPECT_EQ(number(last.at(1)), 6);
}

TEST(Reduce, NamesWhatDoesNotFit) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [] { range(3).reduce(Tensor(0), [](Tensor, Tensor x) { return x; }); }),
              AllOf(HasSubstr("must match the initial state. Expected int32, got int64"),
                    HasSubstr("in reduce, element 0")));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [] { range(3).reduce(zero(), [](Tensor s, Tensor, Tensor) { return s; }); }),
              HasSubstr("takes 3 tensors, but the state has 1 component and the elements have 1"));
  EXPECT_THAT(message_of_thrown<DataLossError>([] {
                range(3).reduce(zero(), [](Tensor s, Tensor x) {
                  if (number(x) == 1) throw DataLossError("one");
                  return s;
                });
              }),
              HasSubstr("in reduce, element 1"));
  EXPECT_THROW(range(3).reduce(Element{}, [](const Element& s, const Element&) { return s; }),
               InvalidArgumentError);
}

TEST(SingleElement, IsTheOnlyOne) {
  EXPECT_EQ(number(range(7, 8).get_single_element().at(0)), 7);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(0).get_single_element(); }),
              HasSubstr("Dataset was empty."));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(2).get_single_element(); }),
              HasSubstr("Dataset had more than one element."));
}

TEST(Unique, GivesEachElementOnce) {
  const auto ds = range(20).map([](Tensor x) { return Tensor(number(x) % 3); }).unique();
  EXPECT_THAT(numbers(ds), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers(ds), ElementsAre(0, 1, 2)) << "each iteration for itself";
  EXPECT_EQ(range(4).unique().cardinality(), kUnknown);
  const auto words = from_tensor_slices(Tensor{"a", "b", "a", "", "b", ""}).unique();
  EXPECT_EQ(text(words), text(from_tensor_slices(Tensor{"a", "b", ""})));
  const auto rows = from_tensor_slices(Tensor{{1, 2}, {1, 2}, {2, 1}}).unique();
  EXPECT_EQ(text(rows), "[1 2] | [2 1]");
  const std::vector<std::string> texts = {"ab", "c", "a", "bc", "ab", "c"};
  const auto lists = from_tensor_slices(Tensor::from(texts, {3, 2})).unique();
  int count = 0;
  for ([[maybe_unused]] const Element& e : lists) ++count;
  EXPECT_EQ(count, 2);
}

TEST(Unique, CanBeSaved) {
  const auto ds = range(20).map([](Tensor x) { return Tensor(number(x) / 4); }).unique();
  auto it = ds.iterator();
  EXPECT_THAT(numbers(it, 2), ElementsAre(0, 1));
  auto other = ds.iterator();
  other.restore(it.save());
  EXPECT_THAT(numbers(other), ElementsAre(2, 3, 4));
}

TEST(Unique, NamesWhatItCannotCompare) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                zip({range(2), range(2)}).unique();
              }),
              HasSubstr("a single component, got (int64[], int64[])"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                from_tensor_slices(Tensor{1.0, 2.0}).unique();
              }),
              HasSubstr("int32, int64 or string, got (float[])"));
  const auto late = range(2).map([](Tensor x) { return std::pair(x, x); }).unique();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { late.iterator().next(); }),
              HasSubstr("in unique, element 0"));
}

TEST(AssertCardinality, IsTrustedAndChecked) {
  const auto odd = [](Tensor x) { return number(x) % 2 == 1; };
  const auto ds = range(10).filter(odd);
  EXPECT_EQ(ds.cardinality(), kUnknown);
  EXPECT_EQ(ds.assert_cardinality(5).cardinality(), 5);
  EXPECT_THAT(numbers(ds.assert_cardinality(5)), ElementsAre(1, 3, 5, 7, 9));
  EXPECT_THAT(
      message_of_thrown<FailedPreconditionError>([&] { numbers(ds.assert_cardinality(6)); }),
      HasSubstr("Input dataset was expected to contain 6 elements but contained only 5 "
                "elements."));
  auto it = ds.assert_cardinality(1).iterator();
  EXPECT_EQ(number(it.next().at(0)), 1);
  EXPECT_THAT(message_of_thrown<FailedPreconditionError>([&] { it.next(); }),
              HasSubstr("to contain 1 element but contained at least 2 elements."));
  Element none;
  EXPECT_FALSE(it.next(none));
  EXPECT_THAT(message_of_thrown<FailedPreconditionError>(
                  [&] { numbers(ds.assert_cardinality(kInfinite)); }),
              HasSubstr("an infinite number of elements but contained only 5 elements."));
  EXPECT_THAT(numbers(ds.repeat().assert_cardinality(kInfinite), 6), ElementsAre(1, 3, 5, 7, 9, 1));
  EXPECT_THROW(ds.assert_cardinality(-2), InvalidArgumentError);
}

TEST(Printing, ReportsStageAndElements) {
  EXPECT_EQ(printed(range(9).batch(4)), "<Batch element_spec=(int64[?])>");
  EXPECT_EQ(printed(range(9).batch(4).element_spec()), to_string(range(9).batch(4).element_spec()));
  EXPECT_EQ(printed(zip({{"x", range(3)}, {"y", from_tensors(Tensor{1.0})}})),
            "<Zip element_spec={x: int64[], y: float[1]}>");
  EXPECT_EQ(printed(Dataset()), "<no dataset>");
  const auto unknown = range(0).map([](const Tensor& x) { return Tensor(number(x)); });
  EXPECT_EQ(printed(unknown), "<Map element_spec=unknown>");
}

TEST(IteratorRange, GivesTheElementsThatAreLeft) {
  auto it = range(5).iterator();
  it.next();
  std::vector<std::int64_t> seen;
  for (auto& element : it) {
    seen.push_back(number(element.at(0)));
    if (seen.size() == 2) break;
  }
  EXPECT_THAT(seen, ElementsAre(1, 2));
  for (const Element& element : it) seen.push_back(number(element[0]));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
  for ([[maybe_unused]] const Element& element : it) ADD_FAILURE() << "beyond its end";
}

TEST(Tuples, NameTheNumberThatTheyWant) {
  const auto pairs = zip({range(2), range(2)});
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] {
                for ([[maybe_unused]] const auto& tuple : pairs.tuples<3>()) {
                }
              }),
              HasSubstr("tuples<3>() was asked for, but the elements have 2 components: use "
                        "tuples<2>()"));
}

}  // namespace
}  // namespace tandem::data
