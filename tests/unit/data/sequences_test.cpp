#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

std::string written(const Tensor& tensor);

// A row-major array as nested lists.
template <class T>
std::string nested(const T*& at, std::span<const std::int64_t> dims) {
  std::ostringstream out;
  if (dims.empty()) {
    out << *at++;
    return out.str();
  }
  out << '[';
  for (std::int64_t i = 0; i < dims[0]; ++i) out << (i ? "," : "") << nested(at, dims.subspan(1));
  out << ']';
  return out.str();
}

std::string written(const Element& element) {
  std::string all;
  for (std::size_t i = 0; i < element.size(); ++i) all += (i ? ";" : "") + written(element[i]);
  return all;
}

std::string written(const Tensor& tensor) {
  const Array& array = tensor.array();
  if (array.dtype() == DType::kVariant) {
    std::string all;
    for (const Element& e : from_variant(tensor)) all += (all.empty() ? "" : ",") + written(e);
    return "{" + all + "}";
  }
  if (array.dtype() == DType::kString) {
    const std::string* at = array.data<std::string>();
    return nested(at, array.shape().dims());
  }
  const std::int64_t* at = array.values<std::int64_t>().data();
  return nested(at, array.shape().dims());
}

// As make_sequences.py writes it.
std::string line(const std::function<Dataset()>& make) {
  std::string cardinality, all;
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : " | ") + part; };
  try {
    const Dataset dataset = make();
    cardinality = std::to_string(dataset.cardinality());
    for (const Element& element : dataset) add(written(element));
  } catch (const Error& error) {
    add("!" + std::string(code_name(error.code())));
  }
  return cardinality + "\t" + all;
}

std::int64_t value(const Tensor& x) { return x.item<std::int64_t>(); }
Dataset tens(const Tensor& x) { return range(value(x) * 10, value(x) * 11); }
Tensor filled(std::vector<std::int64_t> dims, std::int64_t n) {
  const Shape shape{std::span<const std::int64_t>(dims)};
  return Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(shape.num_elements()), n),
                      shape);
}
Tensor sequence(const Tensor& n) { return filled({value(n)}, value(n)); }
Dataset list(std::vector<std::int64_t> values) { return from_tensor_slices(Tensor::from(values)); }

Dataset growing() {
  return range(1, 6).map([](Tensor n) { return sequence(n); });
}
Dataset buckets(BucketOptions options = {},
                std::vector<std::int64_t> lengths = {3, 1, 7, 2, 9, 4, 5, 1, 12, 2, 6}) {
  return list(std::move(lengths))
      .map([](Tensor n) { return sequence(n); })
      .bucket_by_sequence_length([](Tensor e) { return e.dim(0); }, {3, 6}, {2, 3, 2}, options);
}
Dataset dividing() {
  return list({1, 2, 0, 4, 5}).map([](Tensor x) {
    if (value(x) == 0) throw InvalidArgumentError("Integer division by zero");
    return Tensor(20 / value(x));
  });
}
Dataset chosen(std::vector<std::int64_t> choices, bool stop = true) {
  return choose_from_datasets({range(3), range(10, 12), range(20, 24)}, list(std::move(choices)),
                              stop);
}
std::int64_t key(const Tensor& x) { return value(x) % 3; }
Dataset ten(std::int64_t, const Dataset& d) { return d.batch(10); }

using Cases = std::map<std::string, std::function<Dataset()>>;

void add_nested(Cases& cases) {
  cases["flat_map"] = [] { return range(5).flat_map([](Tensor x) { return tens(x); }); };
  for (const std::int64_t cycle : {1, 2, 3, 10}) {
    for (const std::int64_t block : {1, 2, 3}) {
      for (const std::int64_t calls : {0, 2}) {
        const std::string name = calls == 0 ? "interleave " : "parallel_interleave ";
        cases[name + std::to_string(cycle) + " " + std::to_string(block)] = [=] {
          return range(7).interleave(
              [](Tensor x) { return tens(x); },
              {.cycle_length = cycle, .block_length = block, .num_parallel_calls = calls});
        };
      }
    }
  }
  cases["interleave cycle 0"] = [] {
    return range(4).interleave([](Tensor x) { return tens(x); }, {.cycle_length = 0});
  };
  cases["interleave block 0"] = [] {
    return range(4).interleave([](Tensor x) { return tens(x); }, {.block_length = 0});
  };
  cases["group_by_window 2"] = [] {
    return range(10).group_by_window([](Tensor x) { return key(x); }, ten, 2);
  };
  cases["group_by_window 10"] = [] {
    return range(10).group_by_window([](Tensor x) { return key(x); }, ten, 10);
  };
  cases["group_by_window key"] = [] {
    return range(10).group_by_window([](Tensor x) { return key(x); }, ten,
                                     [](std::int64_t k) { return k + 1; });
  };
  cases["group_by_window 0"] = [] {
    return range(10).group_by_window([](Tensor x) { return key(x); }, ten,
                                     [](std::int64_t) { return 0; });
  };
}

void add_batches(Cases& cases) {
  cases["padded_batch"] = [] { return growing().padded_batch(2); };
  cases["padded_batch drop"] = [] { return growing().padded_batch(2, {.drop_remainder = true}); };
  cases["padded_batch values"] = [] {
    return growing().padded_batch(
        2, {.padded_shapes = {PartialShape({6})}, .padding_values = {Tensor(std::int64_t{-1})}});
  };
  cases["padded_batch small"] = [] {
    return growing().padded_batch(3, {.padded_shapes = {PartialShape({2})}});
  };
  cases["padded_batch rank"] = [] {
    return growing().padded_batch(3, {.padded_shapes = {PartialShape({2, 2})}});
  };
  cases["padded_batch dtype"] = [] {
    return growing().padded_batch(3, {.padding_values = {Tensor(1.0)}});
  };
  cases["padded_batch zero"] = [] { return growing().padded_batch(0); };
  cases["padded_batch matrix"] = [] {
    return range(1, 4)
        .map([](Tensor n) {
          return filled({value(n), 4 - value(n)}, value(n));
        })
        .padded_batch(3);
  };
  cases["padded_batch two"] = [] { return zip({growing(), range(5)}).padded_batch(2); };
  cases["bucket"] = [] { return buckets(); };
  cases["bucket drop"] = [] { return buckets({.drop_remainder = true}); };
  cases["bucket boundary"] = [] {
    return buckets({.pad_to_bucket_boundary = true}, {3, 1, 5, 2, 4, 2});
  };
  cases["bucket no padding"] = [] { return buckets({.no_padding = true}); };
  cases["bucket sizes"] = [] {
    return range(3).bucket_by_sequence_length([](Tensor) { return 1; }, {3, 6}, {2, 3});
  };
  cases["rebatch 3"] = [] { return range(10).batch(4).rebatch(3); };
  cases["rebatch 3 drop"] = [] { return range(10).batch(4).rebatch(3, {.drop_remainder = true}); };
  cases["rebatch 1 2"] = [] { return range(10).batch(4).rebatch(std::vector<std::int64_t>{1, 2}); };
  cases["rebatch 7"] = [] { return range(10).batch(2).rebatch(7); };
  cases["unbatch"] = [] { return range(5).batch(2).unbatch(); };
}

void add_windows(Cases& cases) {
  struct Window {
    std::int64_t size, shift, stride;
    bool drop;
  };
  for (const Window w : {Window{3, 0, 1, false}, Window{3, 0, 1, true}, Window{3, 1, 1, false},
                         Window{3, 1, 2, false}, Window{3, 1, 2, true}, Window{2, 3, 2, false},
                         Window{2, 5, 1, false}, Window{2, 5, 1, true}, Window{9, 2, 1, false}}) {
    cases[cat("window ", w.size, " ", w.shift, " ", w.stride, " ", w.drop ? 1 : 0)] = [=] {
      return range(7).window(w.size,
                             {.shift = w.shift, .stride = w.stride, .drop_remainder = w.drop});
    };
  }
  cases["window two"] = [] { return zip({range(3), range(5, 8)}).window(2); };
  cases["window flat"] = [] {
    return range(7).window(3, {.shift = 1}).flat_map([](Tensor w) {
      return from_variant(w).batch(3);
    });
  };
  cases["window size 0"] = [] { return range(7).window(0); };
  cases["window stride 0"] = [] { return range(7).window(2, {.shift = 1, .stride = 0}); };
}

void add_others(Cases& cases) {
  cases["take_while"] = [] { return range(7).take_while([](Tensor x) { return value(x) < 4; }); };
  cases["take_while none"] = [] {
    return range(7).take_while([](Tensor x) { return value(x) > 0; });
  };
  cases["scan"] = [] {
    return range(5).scan({Tensor(std::int64_t{0})}, [](Tensor s, Tensor x) {
      return std::pair(Tensor(value(s) + value(x)), Tensor(value(s) * 10 + value(x)));
    });
  };
  cases["scan dtype"] = [] {
    return range(5).scan({Tensor(0.0)}, [](Tensor, Tensor x) { return std::pair(x, x); });
  };
  cases["choose"] = [] { return chosen({0, 1, 2, 0, 1, 2, 0, 1, 2, 2}); };
  cases["choose on"] = [] { return chosen({0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0}, false); };
  cases["choose range"] = [] { return chosen({0, 3}); };
  cases["choose dtype"] = [] {
    return choose_from_datasets({range(3), range(4)}, from_tensor_slices(Tensor{0, 1}));
  };
  cases["choose none"] = [] { return choose_from_datasets({}, range(2)); };
  cases["sample zero"] = [] {
    return sample_from_datasets({range(3), range(10, 13)}, {.weights = {1, 0}, .seed = 1});
  };
  cases["ignore_errors"] = [] { return dividing().ignore_errors(); };
  cases["interleave errors"] = [] {
    return range(6)
        .interleave(
            [](Tensor x) {
              return range(value(x) * 10, value(x) * 10 + 4).map([](Tensor y) {
                if (value(y) % 10 == 2) throw InvalidArgumentError("Integer division by zero");
                return y;
              });
            },
            {.cycle_length = 2})
        .ignore_errors();
  };
  cases["ignore_errors batch"] = [] { return dividing().batch(2).ignore_errors(); };
  cases["enumerate"] = [] { return from_tensor_slices(Tensor{"a", "b"}).enumerate(5); };
  cases["shard"] = [] { return range(10).shard(3, 1); };
  cases["zip"] = [] { return zip({range(3), range(10, 14)}); };
  cases["skip take"] = [] { return range(10).skip(7).take(-1).concatenate(range(2).take(1)); };
  for (const std::int64_t buffer : {1, 3, 10}) {
    cases[cat("shuffle ", buffer)] = [=] {
      return range(10).shuffle(buffer, {.seed = 42}).repeat(2);
    };
  }
}

TEST(Sequences, AreThoseOfTensorFlow) {
  Cases cases;
  add_nested(cases);
  add_batches(cases);
  add_windows(cases);
  add_others(cases);
  std::ifstream file("tests/unit/data/expected/sequences.txt");
  ASSERT_TRUE(file) << "run in the repository root";
  std::set<std::string> seen;
  for (std::string text; std::getline(file, text);) {
    const std::size_t tab = text.find('\t');
    ASSERT_NE(tab, std::string::npos) << text;
    const std::string name = text.substr(0, tab);
    seen.insert(name);
    const auto found = cases.find(name);
    if (found == cases.end()) {
      ADD_FAILURE() << "no pipeline for " << name;
      continue;
    }
    std::string ours = line(found->second), theirs = text.substr(tab + 1);
    // An error that TensorFlow has when the dataset is made may come when it is iterated: a map's
    // dtypes need not be known before.
    if (theirs.starts_with("\t!")) ours.erase(0, ours.find('\t'));
    EXPECT_EQ(ours, theirs) << name;
  }
  EXPECT_EQ(seen.size(), cases.size());
  EXPECT_GE(seen.size(), 70u);
}

}  // namespace
}  // namespace tandem::data
