#include "tandem/kernels/cpu/parse/example_parser.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tandem::cpu {

// A key's place in a list. Records mostly have their features in one order, so the place that the
// same entry of the last record had is tried first.
class KeyIndex {
 public:
  explicit KeyIndex(const std::vector<Wanted>& wanted) : wanted_(wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // The first of equal keys has an entry, the others follow it.
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

std::string ExampleParser::place(std::int64_t record, const Wanted* w) const {
  if (single_) return w ? cat("Key: ", w->key, ".  ") : "";
  const bool named = names_ && names_->num_elements() > record;
  const std::string name = named ? names_->data<std::string>()[record] : "<unknown>";
  return w ? cat("Name: ", name, ", Key: ", w->key, ", Index: ", record, ".  ")
           : cat("Name: ", name, ", ");
}

void ExampleParser::want_dense(std::string key, int i, const PartialShape& shape,
                               const Array& fallback, int output) {
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

void ExampleParser::run() {
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

void ExampleParser::allocate_fixed() {
  for (Wanted& w : wanted_) {
    if (w.form != Form::kFixed) continue;
    Shape shape;
    if (!single_) shape.add_dim(batch());
    for (const std::int64_t size : w.row.dims()) shape.add_dim(size);
    w.values = &c_.allocate_output(w.output, shape);
  }
}

void ExampleParser::locate(std::int64_t begin, std::int64_t end, const KeyIndex& index) {
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

void ExampleParser::take(std::int64_t record, const Wanted& w, const WireFeature& feature) {
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

void ExampleParser::put_fixed(std::int64_t record, const Wanted& w, const WireFeature& feature) {
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

void ExampleParser::put_default(std::int64_t record, const Wanted& w) {
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

void ExampleParser::put_variable(const Wanted& w) {
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

void ExampleParser::put_indices(const Wanted& w, const std::vector<std::int64_t>& starts,
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
void ExampleParser::put_splits(const Wanted& w, const std::vector<std::int64_t>& starts) {
  const std::size_t count = !single_ ? starts.size() : scalar_splits_ ? 1 : 0;
  const Shape shape = single_ && scalar_splits_ ? Shape{} : Shape{static_cast<std::int64_t>(count)};
  T* out = c_.allocate_output(w.output + static_cast<int>(w.stride), shape).template data<T>();
  if (count > 0 && starts.back() > std::numeric_limits<T>::max()) {
    fail(0, w, "There are more values than its row splits' dtype can count.");
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(starts[i]);
}

}  // namespace tandem::cpu
