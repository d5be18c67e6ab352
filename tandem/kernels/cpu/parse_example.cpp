// ParseExampleV2, ParseExample and ParseSingleExample: the features of serialized Examples as
// tensors. Two passes over the records, both in parallel: the first finds the features, and writes
// those of fixed shape; the second writes the others, whose places follow from all counts.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/example_wire.h"

namespace tandem::cpu {
namespace {

enum class Form : std::uint8_t { kFixed, kPadded, kSparse, kRagged };

// What is asked for under one key.
struct Wanted {
  std::string key;
  Form form;
  DType dtype;
  int output;               // the values'
  PartialShape shape;       // of a dense feature
  Shape row;                // its known sizes, without a first one that varies
  std::int64_t stride = 1;  // values in `row`
  const Array* fallback = nullptr;
  Array* values = nullptr;
  std::size_t variable = 0;  // its column among the features of the second pass
};

FeatureKind kind_of(DType dtype) {
  return dtype == DType::kFloat   ? FeatureKind::kFloat
         : dtype == DType::kInt64 ? FeatureKind::kInt64
                                  : FeatureKind::kBytes;
}

std::string_view name_of(FeatureKind kind) {
  constexpr std::string_view kNames[] = {"none", "string", "float", "int64"};
  return kNames[static_cast<std::size_t>(kind)];
}

template <class F>
decltype(auto) with_type(DType dtype, F f) {
  if (dtype == DType::kFloat) return f(float{});
  if (dtype == DType::kInt64) return f(std::int64_t{});
  return f(std::string{});
}

// A key's place in a list. Records mostly have their features in one order, so the place that the
// same entry of the last record had is tried first.
class KeyIndex {
 public:
  explicit KeyIndex(const std::vector<Wanted>& wanted) : wanted_(wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Of equal keys the first has a place, the others follow it.
      const auto [at, fresh] = places_.try_emplace(wanted[i].key, i);
      if (!fresh) same_.emplace_back(at->second, i);
    }
  }
  struct Guess {
    std::vector<std::int32_t> places;
  };
  std::int32_t find(std::string_view key, std::size_t entry, Guess& guess) const {
    if (entry >= guess.places.size()) guess.places.resize(entry + 1, -1);
    std::int32_t& place = guess.places[entry];
    if (place >= 0 && wanted_[static_cast<std::size_t>(place)].key == key) return place;
    const auto found = places_.find(key);
    if (found == places_.end()) return -1;
    return place = static_cast<std::int32_t>(found->second);
  }
  const std::vector<std::pair<std::size_t, std::size_t>>& same() const { return same_; }

 private:
  const std::vector<Wanted>& wanted_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<std::pair<std::size_t, std::size_t>> same_;
};

struct Located {
  std::string_view list;  // as in WireFeature
  std::int64_t count = 0;
};

class Parser {
 public:
  Parser(KernelContext& c, const Array& serialized, const Array* names)
      : c_(c),
        records_(serialized.values<std::string>()),
        names_(names),
        single_(serialized.rank() == 0) {}

  void want(Wanted wanted) { wanted_.push_back(std::move(wanted)); }
  /// A dense feature, after checking its shape and default as TensorFlow does.
  void want_dense(std::string key, int i, const PartialShape& shape, const Array& fallback,
                  int output);
  void run();

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(records_.size()); }
  std::string place(std::int64_t record, const Wanted* w) const;
  [[noreturn]] void fail(std::int64_t record, const Wanted& w, const std::string& why) const {
    throw InvalidArgumentError(place(record, &w) + why);
  }
  void allocate_fixed();
  void locate(std::int64_t begin, std::int64_t end, const KeyIndex& index);
  void take(std::int64_t record, const Wanted& w, const WireFeature& feature);
  void put_fixed(std::int64_t record, const Wanted& w, const WireFeature& feature);
  void put_default(std::int64_t record, const Wanted& w);
  void put_variable(const Wanted& w);
  void put_indices(const Wanted& w, const std::vector<std::int64_t>& starts, std::int64_t longest);
  template <class T>
  void put_splits(const Wanted& w, const std::vector<std::int64_t>& starts);
  Located& located(std::int64_t record, const Wanted& w) {
    return located_[static_cast<std::size_t>(record) * variables_ + w.variable];
  }

  KernelContext& c_;
  const std::span<const std::string> records_;
  const Array* names_;
  const bool single_;
  std::vector<Wanted> wanted_;
  std::size_t variables_ = 0;
  std::vector<Located> located_;
};

std::string Parser::place(std::int64_t record, const Wanted* w) const {
  if (single_) return w ? cat("Key: ", w->key, ".  ") : "";
  const bool named = names_ && names_->num_elements() > record;
  const std::string name = named ? names_->data<std::string>()[record] : "<unknown>";
  return w ? cat("Name: ", name, ", Key: ", w->key, ", Index: ", record, ".  ")
           : cat("Name: ", name, ", ");
}

void Parser::want_dense(std::string key, int i, const PartialShape& shape, const Array& fallback,
                        int output) {
  Wanted w{std::move(key), Form::kFixed, fallback.dtype(), output, shape, {}, 1, &fallback};
  bool known = shape.has_rank();
  for (int axis = 0; known && axis < shape.rank(); ++axis) {
    if (shape.dim(axis) >= 0) {
      w.row.add_dim(shape.dim(axis));
    } else if (axis == 0) {
      w.form = Form::kPadded;
    } else {
      known = false;
    }
  }
  if (!known) {
    throw InvalidArgumentError(cat(
        "dense_shapes[", i, "] has unknown rank or unknown inner dimensions: ", shape.to_string()));
  }
  w.stride = w.row.num_elements();
  if (w.form == Form::kPadded) {
    if (fallback.num_elements() != 1) {
      throw InvalidArgumentError(cat("dense_shape[", i, "] is a variable length shape: ",
                                     shape.to_string(), ", therefore def_value[", i,
                                     "] must contain a single element (the padding element).  But "
                                     "its shape is: ",
                                     fallback.shape()));
    }
    if (w.stride == 0) {
      throw InvalidArgumentError(
          cat("dense_shapes[", i, "] has an inner dimension of 0: ", shape.to_string()));
    }
  } else if (fallback.num_elements() > 0 && !(fallback.shape() == w.row)) {
    throw InvalidArgumentError(cat("def_value[", i, "].shape() == ", fallback.shape(),
                                   " is not compatible with dense_shapes_[", i,
                                   "] == ", shape.to_string()));
  }
  wanted_.push_back(std::move(w));
}

void Parser::run() {
  std::int64_t bytes = 0;
  for (const std::string& record : records_) bytes += static_cast<std::int64_t>(record.size());
  for (Wanted& w : wanted_) {
    if (w.form != Form::kFixed) w.variable = variables_++;
  }
  allocate_fixed();
  located_.resize(records_.size() * variables_);
  if (!wanted_.empty()) {
    const KeyIndex index(wanted_);
    const double cost =
        batch() == 0 ? 0 : 50 + static_cast<double>(bytes) / static_cast<double>(batch());
    c_.intra_op().parallel_for(
        batch(), cost, [&](std::int64_t begin, std::int64_t end) { locate(begin, end, index); });
  }
  for (const Wanted& w : wanted_) {
    if (w.form != Form::kFixed) put_variable(w);
  }
}

void Parser::allocate_fixed() {
  for (Wanted& w : wanted_) {
    if (w.form != Form::kFixed) continue;
    Shape shape;
    if (!single_) shape.add_dim(batch());
    for (const std::int64_t size : w.row.dims()) shape.add_dim(size);
    w.values = &c_.allocate_output(w.output, shape);
  }
}

void Parser::locate(std::int64_t begin, std::int64_t end, const KeyIndex& index) {
  KeyIndex::Guess guess;
  std::vector<std::string_view> found(wanted_.size());
  for (std::int64_t record = begin; record < end; ++record) {
    std::fill(found.begin(), found.end(), std::string_view());
    std::size_t entry = 0;
    const std::string& bytes = records_[static_cast<std::size_t>(record)];
    const bool whole = walk_example(bytes, [&](std::string_view key, std::string_view feature) {
      const std::int32_t at = index.find(key, entry++, guess);
      if (at >= 0) found[static_cast<std::size_t>(at)] = feature;  // the last one counts
      return true;
    });
    if (!whole) {
      throw InvalidArgumentError(cat(place(record, nullptr),
                                     "Could not parse example input, record ", record, " of ",
                                     bytes.size(), " bytes."));
    }
    for (const auto& [first, other] : index.same()) found[other] = found[first];
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      WireFeature feature;
      if (!WireFeature::read(found[i], feature)) {
        fail(record, wanted_[i], "Can't parse serialized Example.");
      }
      take(record, wanted_[i], feature);
    }
  }
}

void Parser::take(std::int64_t record, const Wanted& w, const WireFeature& feature) {
  const FeatureKind kind = kind_of(w.dtype);
  if (feature.kind == FeatureKind::kNone) {
    if (w.form == Form::kFixed) put_default(record, w);
    return;
  }
  if (feature.kind != kind) {
    const bool dense = w.form == Form::kFixed || w.form == Form::kPadded;
    fail(record, w,
         dense ? cat("Data types don't match. Data type: ", name_of(feature.kind),
                     " but expected type: ", name_of(kind))
               : cat("Data types don't match. Expected type: ", name_of(kind),
                     ", Actual type: ", name_of(feature.kind)));
  }
  if (w.form == Form::kFixed) return put_fixed(record, w, feature);
  Located& place = located(record, w);
  place.list = feature.list;
  if (!feature.count(place.count)) fail(record, w, "Can't parse serialized Example.");
  if (w.form == Form::kPadded && place.count % w.stride != 0) {
    fail(record, w,
         cat("Number of ", kind == FeatureKind::kBytes ? "bytes" : name_of(kind),
             " values is not a multiple of stride length. Saw ", place.count,
             " values but output shape is: ", w.shape.to_string()));
  }
}

void Parser::put_fixed(std::int64_t record, const Wanted& w, const WireFeature& feature) {
  std::int64_t count = 0;
  const bool whole = with_type(w.dtype, [&](auto type) {
    using T = decltype(type);
    return feature.values(w.values->data<T>() + record * w.stride, w.stride, count);
  });
  if (!whole) fail(record, w, "Can't parse serialized Example.");
  if (count != w.stride) {
    fail(record, w,
         cat("Number of ", feature.kind == FeatureKind::kBytes ? "bytes" : name_of(feature.kind),
             " values != expected.  Values size: ", count,
             " but output shape: ", w.shape.to_string()));
  }
}

void Parser::put_default(std::int64_t record, const Wanted& w) {
  if (w.fallback->num_elements() == 0) {
    throw InvalidArgumentError(cat(place(record, nullptr), "Feature: ", w.key, " (data type: ",
                                   w.dtype, ") is required but could not be found."));
  }
  with_type(w.dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = w.fallback->data<T>();
    std::copy(from, from + w.stride, w.values->data<T>() + record * w.stride);
  });
}

void Parser::put_variable(const Wanted& w) {
  std::vector<std::int64_t> starts(records_.size() + 1);
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < batch(); ++i) {
    const std::int64_t count = located(i, w).count;
    longest = std::max(longest, count);
    starts[static_cast<std::size_t>(i) + 1] = starts[static_cast<std::size_t>(i)] + count;
  }
  Shape shape;
  if (w.form == Form::kPadded) {
    if (!single_) shape.add_dim(batch());
    shape.add_dim(longest / w.stride);
    for (const std::int64_t size : w.row.dims()) shape.add_dim(size);
  } else {
    shape.add_dim(starts.back());
  }
  Array& values = c_.allocate_output(w.output, shape);
  const double cost = 5 + static_cast<double>(longest);
  with_type(w.dtype, [&](auto type) {
    using T = decltype(type);
    T* const out = values.data<T>();
    c_.intra_op().parallel_for(batch(), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Located& place = located(i, w);
        const std::int64_t start =
            w.form == Form::kPadded ? i * longest : starts[static_cast<std::size_t>(i)];
        std::int64_t count = 0;
        if (!WireFeature{kind_of(w.dtype), place.list}.values(out + start, place.count, count) ||
            count != place.count) {
          fail(i, w, "Can't parse serialized Example.");
        }
        if (w.form == Form::kPadded) {
          std::fill(out + start + count, out + start + longest, w.fallback->data<T>()[0]);
        }
      }
    });
  });
  if (w.form == Form::kSparse) put_indices(w, starts, longest);
  if (w.form == Form::kRagged) {
    // The row splits' outputs follow the ragged values'.
    c_.output_dtype(w.output + static_cast<int>(w.stride)) == DType::kInt32
        ? put_splits<std::int32_t>(w, starts)
        : put_splits<std::int64_t>(w, starts);
  }
}

void Parser::put_indices(const Wanted& w, const std::vector<std::int64_t>& starts,
                         std::int64_t longest) {
  const int count = static_cast<int>(w.stride);  // of sparse features
  const std::int64_t rank = single_ ? 1 : 2;
  auto* indices =
      c_.allocate_output(w.output - count, Shape{starts.back(), rank}).data<std::int64_t>();
  for (std::int64_t i = 0; i < batch(); ++i) {
    const std::int64_t n =
        starts[static_cast<std::size_t>(i) + 1] - starts[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < n; ++k) {
      if (!single_) *indices++ = i;
      *indices++ = k;
    }
  }
  auto* shape = c_.allocate_output(w.output + count, Shape{rank}).data<std::int64_t>();
  if (!single_) *shape++ = batch();
  *shape = longest;
}

template <class T>
void Parser::put_splits(const Wanted& w, const std::vector<std::int64_t>& starts) {
  const std::size_t count = single_ ? 0 : starts.size();
  T* out = c_.allocate_output(w.output + static_cast<int>(w.stride),
                              Shape{static_cast<std::int64_t>(count)})
               .template data<T>();
  if (count > 0 && starts.back() > std::numeric_limits<T>::max()) {
    fail(0, w, "There are more values than its row splits' dtype can count.");
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(starts[i]);
}

// ---- The three ops. Keys are inputs or attributes. ----

std::vector<std::string> strings_of(const Array& array) {
  const auto values = array.values<std::string>();
  return {values.begin(), values.end()};
}

void check_count(const char* what, std::size_t keys, const char* types_name, std::size_t types) {
  if (keys != types) {
    throw InvalidArgumentError(
        cat("Expected len(", what, ") == len(", types_name, ") but got: ", keys, " vs. ", types));
  }
}

struct Request {
  std::vector<std::string> sparse, dense, ragged;
  int first_default = 0;  // input
};

void parse(KernelContext& c, const Request& request, const Array* names) {
  const Array& serialized = c.input(0);
  const auto& shapes = c.attr<std::vector<PartialShape>>("dense_shapes");
  const std::size_t defaults = static_cast<std::size_t>(c.num_inputs() - request.first_default);
  // sparse: indices, values, shapes; dense values; ragged values, row splits
  const int num_sparse = static_cast<int>(request.sparse.size());
  const int num_dense = static_cast<int>(request.dense.size());
  const int num_ragged = static_cast<int>(request.ragged.size());
  check_count("dense_keys", request.dense.size(), "dense_types", defaults);
  check_count("dense_keys", request.dense.size(), "dense_shapes", shapes.size());
  if (c.num_outputs() != 3 * num_sparse + num_dense + 2 * num_ragged) {
    throw InvalidArgumentError(
        cat("The numbers of keys (", num_sparse, " sparse, ", num_dense, " dense, ", num_ragged,
            " ragged) and of types do not agree: there are ", c.num_outputs(), " outputs."));
  }
  if (names && names->num_elements() > 0 && !(names->shape() == serialized.shape())) {
    throw InvalidArgumentError(cat("Expected names have the same shape as serialized: name.shape=",
                                   names->shape(), ", serialized.shape=", serialized.shape()));
  }
  Parser parser(c, serialized, names);
  for (int i = 0; i < num_sparse; ++i) {
    const int output = num_sparse + i;
    parser.want({request.sparse[static_cast<std::size_t>(i)],
                 Form::kSparse,
                 c.output_dtype(output),
                 output,
                 {},
                 {},
                 num_sparse});
  }
  for (int i = 0; i < num_dense; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parser.want_dense(request.dense[at], i, shapes[at], c.input(request.first_default + i),
                      3 * num_sparse + i);
  }
  for (int i = 0; i < num_ragged; ++i) {
    const int output = 3 * num_sparse + num_dense + i;
    parser.want({request.ragged[static_cast<std::size_t>(i)],
                 Form::kRagged,
                 c.output_dtype(output),
                 output,
                 {},
                 {},
                 num_ragged});
  }
  parser.run();
}

void parse_example_v2(KernelContext& c) {
  if (c.input(0).rank() > 1) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a scalar or vector, got shape: ", c.input(0).shape()));
  }
  parse(c, {strings_of(c.input(2)), strings_of(c.input(3)), strings_of(c.input(4)), 5},
        &c.input(1));
}

void parse_example(KernelContext& c) {
  if (c.input(0).rank() != 1) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a vector, got shape: ", c.input(0).shape()));
  }
  const int sparse = static_cast<int>(c.attr<std::int64_t>("Nsparse"));
  const int dense = static_cast<int>(c.attr<std::int64_t>("Ndense"));
  Request request;
  request.first_default = 2 + sparse + dense;
  for (int i = 0; i < sparse + dense; ++i) {
    const Array& key = c.input(2 + i);
    if (key.num_elements() != 1) {
      throw InvalidArgumentError(cat("Every key must be a scalar, got shape ", key.shape()));
    }
    (i < sparse ? request.sparse : request.dense).push_back(key.data<std::string>()[0]);
  }
  parse(c, request, &c.input(1));
}

void parse_single_example(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(
        cat("Expected serialized to be a scalar, got shape: ", c.input(0).shape()));
  }
  parse(c,
        {c.attr<std::vector<std::string>>("sparse_keys"),
         c.attr<std::vector<std::string>>("dense_keys"),
         {},
         1},
        nullptr);
}

const KernelRegistration kParseV2{{.op = "ParseExampleV2", .run = parse_example_v2}};
const KernelRegistration kParse{{.op = "ParseExample", .run = parse_example}};
const KernelRegistration kParseSingle{{.op = "ParseSingleExample", .run = parse_single_example}};

}  // namespace
}  // namespace tandem::cpu
