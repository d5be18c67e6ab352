#include "tandem/data/structure.h"

#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/core/error.h"
#include "tandem/data/fuse.h"
#include "tandem/io/example.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/example_ops.h"
#include "tandem/ops/operators.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor column(std::int64_t factor) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 6; ++i) values.push_back(i * factor);
  return Tensor::from(values);
}

Dataset pictures() { return from_tensor_slices({{"label", column(1)}, {"image", column(10)}}); }

// Name and value of each component: "image=10 label=1 | …".
std::string named(const Dataset& dataset) {
  std::string all;
  for (const TensorMap& element : dataset.maps()) {
    if (!all.empty()) all += " |";
    for (const auto& [name, value] : element) {
      all += (all.empty() ? "" : " ") + name + "=" + value.to_string();
    }
  }
  return all;
}

TEST(Structure, SourcesHaveNames) {
  EXPECT_THAT(pictures().names(), ElementsAre("image", "label"));
  EXPECT_EQ(to_string(pictures().element_spec()), "(int64[], int64[])");
  EXPECT_EQ(named(pictures().take(2)), "image=0 label=0 | image=10 label=1");
  EXPECT_EQ(named(from_tensors({{"a", Tensor(1)}, {"b", Tensor("x")}})), "a=1 b=b'x'");
  const TensorMap columns = {{"n", column(3)}};
  EXPECT_EQ(named(from_tensor_slices(columns).skip(5)), "n=15");
  EXPECT_TRUE(range(3).names().empty());
}

TEST(Structure, StagesKeepThem) {
  const Dataset ds = pictures().shuffle(3, {.seed = 1}).repeat(2).skip(1).batch(2).prefetch(1);
  EXPECT_THAT(ds.names(), ElementsAre("image", "label"));
  for (const TensorMap& batch : ds.take(3).maps()) {
    EXPECT_EQ((batch.at("label") * std::int64_t{10}).to_string(), batch.at("image").to_string());
  }
  EXPECT_EQ(named(pictures().batch(4).unbatch().take(1).cache()), "image=0 label=0");
  EXPECT_EQ(named(pictures().concatenate(pictures()).skip(11)), "image=50 label=5");
}

TEST(Structure, ComponentsAreChecked) {
  const Element element{Tensor(7)};
  EXPECT_EQ(element[0].item<std::int32_t>(), 7);
  try {
    element[3];
    FAIL() << "an element of one component has a fourth";
  } catch (const OutOfRangeError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("3"), HasSubstr("1")));
  }
  EXPECT_THROW(Element().at(0), OutOfRangeError);
  const Dataset wrong = range(2).map([](const Element& e) { return Element{e[1]}; });
  EXPECT_THROW(wrong.begin(), OutOfRangeError);
}

TEST(Structure, FunctionsReturnParsedExamples) {
  io::Example example;
  example.set("label", std::vector<std::int64_t>{4});
  example.set("weights", std::vector<float>{0.5f, 1.5f});
  const Dataset parsed = from_tensors(Tensor(example.serialize())).map([](Tensor bytes) {
    return io::parse_single_example(bytes, {{"label", io::FixedLenFeature{{}, int64}},
                                            {"weights", io::VarLenFeature{float32}}});
  });
  EXPECT_THAT(parsed.names(),
              ElementsAre("label", "weights/indices", "weights/values", "weights/dense_shape"));
  for (const TensorMap& element : parsed.maps()) {
    EXPECT_EQ(element.at("label").item<std::int64_t>(), 4);
    EXPECT_THAT(element.at("weights/values").to_vector<float>(), ElementsAre(0.5f, 1.5f));
  }
}

TEST(Structure, FunctionsTakeAndReturnMaps) {
  const Dataset mapped = pictures().map([](TensorMap e) {
    e["sum"] = e.at("image") + e.at("label");
    e.erase("image");
    return e;
  });
  EXPECT_THAT(mapped.names(), ElementsAre("label", "sum"));
  EXPECT_EQ(to_string(mapped.element_spec()), "(int64[], int64[])");
  EXPECT_EQ(named(mapped.take(2)), "label=0 sum=0 | label=1 sum=11");
  const Dataset made = range(3).map([](Tensor x) { return TensorMap{{"x", x}, {"twice", x + x}}; });
  EXPECT_EQ(named(made.skip(2)), "twice=4 x=2");
  // A function that takes tensors gets them in the order of the names; its results have none.
  const Dataset sums = pictures().map([](Tensor image, Tensor label) { return image - label; });
  EXPECT_TRUE(sums.names().empty());
  EXPECT_EQ(numbers(sums.take(3)), (std::vector<std::int64_t>{0, 9, 18}));
  EXPECT_EQ(numbers(pictures().map([](const TensorMap& e) { return e.at("label"); })), upto(6));
  EXPECT_EQ(named(pictures().filter(
                [](const TensorMap& e) { return e.at("label").item<std::int64_t>() == 3; })),
            "image=30 label=3");
  EXPECT_EQ(named(pictures()
                      .map(
                          [](const TensorMap& e) {
                            return TensorMap{{"n", plus(e.at("label"), 1)}};  // cannot be traced
                          },
                          {.num_parallel_calls = 2})
                      .take(2)),
            "n=1 | n=2");
}

// As functions of tensors are: docs/data.md, "Which functions are traced?".
TEST(Structure, FunctionsThatHoldNothingAreTraced) {
  static std::atomic<int> calls{0};
  const Dataset many = from_tensor_slices(
      {{"a", Tensor::from(std::vector<std::int64_t>(40, 1))}, {"b", Tensor::from(upto(40))}});
  const auto twice = [](TensorMap e) {
    ++calls;
    e["twice"] = e["b"] * std::int64_t{2};
    e.erase("a");
    return e;
  };
  const auto times_called = [](const Dataset& dataset) {
    calls = 0;
    for (const Element& element : dataset) EXPECT_FALSE(element.empty());
    return calls.load();
  };
  EXPECT_EQ(times_called(many.map(twice)), 1);
  EXPECT_EQ(times_called(many.take(3).map(twice)), 3);
  EXPECT_EQ(times_called(many.map(twice, {.traced = false})), 40);
  EXPECT_EQ(times_called(zip({many, range(40)}).map([](TensorMap e, const Tensor& n) {
              ++calls;
              e["n"] = n;
              return std::pair(e, n);
            })),
            1);
  EXPECT_EQ(times_called(many.filter([](const TensorMap& e) {
              ++calls;
              return less(e.at("b") * e.at("b") + e.at("a"), std::int64_t{50});
            })),
            1);
  EXPECT_EQ(named(many.map(twice).skip(39)), "b=39 twice=78");
  const Dataset both = many.map(twice).map([](const TensorMap& e) { return e.at("twice"); });
  EXPECT_EQ(numbers(both).back(), 78);
  EXPECT_THAT(stages(both), HasSubstr("Map+Map"));
}

TEST(Structure, Nests) {
  const Dataset pairs = zip({pictures(), range(100, 110)});
  EXPECT_THAT(pairs.names(), ElementsAre("0/image", "0/label", "1"));
  const Dataset joined = pairs.map([](TensorMap e, const Tensor& number) {
    e["number"] = number;
    return std::pair(e, TensorMap{{"same", e.at("label")}});
  });
  EXPECT_THAT(joined.names(), ElementsAre("0/image", "0/label", "0/number", "1/same"));
  EXPECT_EQ(named(joined.skip(5)), "0/image=50 0/label=5 0/number=105 1/same=5");
  EXPECT_EQ(numbers(joined.map([](const TensorMap& a, const TensorMap& b) {
              return a.at("number") + b.at("same");
            })),
            (std::vector<std::int64_t>{100, 102, 104, 106, 108, 110}));
  const Dataset features = zip({{"x", pictures()}, {"y", range(6)}});
  EXPECT_THAT(features.names(), ElementsAre("x/image", "x/label", "y"));
  EXPECT_THAT(pictures().enumerate().names(), ElementsAre("0", "1/image", "1/label"));
  EXPECT_TRUE(zip({range(3), range(3)}).names().empty());
}

TEST(Structure, Errors) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { named(range(3)); }),
              HasSubstr("number 0 has no name"));
  EXPECT_THAT(
      message_of_thrown<InvalidArgumentError>([] {
        numbers(pictures().map([](const TensorMap& a, const Tensor&) { return a.at("x"); }));
      }),
      HasSubstr("takes a map as parameter 0"));
  const Dataset changing = range(3).map([](const Tensor& x) {
    return TensorMap{{x.item<std::int64_t>() == 2 ? "other" : "name", x}};
  });
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { named(changing); }),
              HasSubstr("first 'name', now 'other'"));
}

TEST(Structure, MissingNamesAreReportedWithThoseThereAre) {
  for (const std::int64_t repeats : {1, 10}) {  // called, and first tried to be traced
    const auto asked = [&](auto function) {
      return [=] { named(pictures().repeat(repeats).map(function)); };
    };
    EXPECT_THAT(message_of_thrown<NotFoundError>(asked([](TensorMap e) {
                  e["sum"] = e.at("lable");
                  return e;
                })),
                HasSubstr("There is no component 'lable'; there are 'image', 'label'."));
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>(asked([](TensorMap e) {
                  e["image"] = e["lable"] + e["image"];
                  return e;
                })),
                HasSubstr("was 'lable'; it had 'image', 'label'."));
  }
  for (const TensorMap& e : pictures().take(1).maps()) EXPECT_THROW(e.at("x"), NotFoundError);
  // Functions on plain maps are the same.
  using Plain = std::map<std::string, Tensor>;
  const Dataset plain = pictures().map([](Plain e) {
    e.erase("image");
    return e;
  });
  EXPECT_EQ(named(plain.take(2)), "label=0 | label=1");
  EXPECT_EQ(named(from_tensor_slices(Plain{{"n", column(3)}}).skip(5)), "n=15");
}

TEST(Structure, IsSavedAndRestored) {
  expect_resumes([] {
    return pictures().shuffle(4, {.seed = 2}).map([](TensorMap e) {
      e["n"] = plus(e.at("label"), 5);
      return e;
    });
  });
}

}  // namespace
}  // namespace tandem::data
