#include "tandem/kernels/cpu/parse/sequence_parser.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>

namespace tandem::cpu {
namespace {

template <class T>
void copy(const Steps& steps, const Located& step, T* to) {
  const FeatureKind kind = std::is_same_v<T, float>          ? FeatureKind::kFloat
                           : std::is_same_v<T, std::int64_t> ? FeatureKind::kInt64
                                                             : FeatureKind::kBytes;
  std::int64_t n = 0;
  if (!WireFeature{kind, step.list}.values(to, step.count, n) || n != step.count) {
    throw InvalidArgumentError(
        cat("Feature list: ", steps.key, ".  Can't parse serialized SequenceExample."));
  }
}

}  // namespace

void SequenceParser::find() {
  std::unordered_map<std::string_view, std::string_view> lists;
  for (std::size_t record = 0; record < records_.size(); ++record) {
    lists.clear();
    const std::string& bytes = records_[record];
    WireCursor cursor(bytes);
    bool whole = true;
    while (whole && !cursor.done()) {
      std::uint64_t tag = 0;
      std::string_view map;
      whole = cursor.varint(tag);
      if (!whole) break;
      if (tag != 0x12) {
        whole = cursor.skip(tag);
        continue;
      }
      whole = cursor.bytes(map) && walk_map(map, [&](std::string_view key, std::string_view list) {
                lists[key] = list;  // the last one counts
                return true;
              });
    }
    if (!whole) {
      throw InvalidArgumentError(
          cat("Could not parse SequenceExample ", record, " of ", bytes.size(), " bytes."));
    }
    for (Steps& steps : wanted_) {
      const auto at = lists.find(steps.key);
      steps.found.push_back(at != lists.end());
      if (at != lists.end()) take(record, steps, at->second);
      const std::size_t before = steps.begin.back();
      steps.begin.push_back(steps.all.size());
      steps.longest = std::max(steps.longest, static_cast<std::int64_t>(steps.all.size() - before));
    }
  }
}

void SequenceParser::take(std::size_t record, Steps& steps, std::string_view list) {
  const FeatureKind kind = kind_of(steps.dtype);
  WireCursor cursor(list);
  while (!cursor.done()) {
    std::uint64_t tag = 0;
    std::string_view bytes;
    if (!cursor.varint(tag)) fail(record, steps.key, "Can't parse serialized SequenceExample.");
    if (tag != 0x0a) {
      if (!cursor.skip(tag)) fail(record, steps.key, "Can't parse serialized SequenceExample.");
      continue;
    }
    WireFeature feature;
    Located step;
    if (!cursor.bytes(bytes) || !WireFeature::read(bytes, feature)) {
      fail(record, steps.key, "Can't parse serialized SequenceExample.");
    }
    if (feature.kind != FeatureKind::kNone && feature.kind != kind) {
      fail(record, steps.key,
           cat("Data types don't match. Expected type: ", name_of(kind),
               ", Actual type: ", name_of(feature.kind)));
    }
    step.list = feature.list;
    if (!feature.count(step.count)) {
      fail(record, steps.key, "Can't parse serialized SequenceExample.");
    }
    steps.widest = std::max(steps.widest, step.count);
    steps.values += step.count;
    steps.all.push_back(step);
  }
}

void SequenceParser::put_values(const Steps& steps, int output) {
  Array& values = c_.allocate_output(output, Shape{steps.values});
  with_type(values.dtype(), [&](auto type) {
    auto* out = values.data<decltype(type)>();
    for (const Located& step : steps.all) {
      copy(steps, step, out);
      out += step.count;
    }
  });
}

void SequenceParser::put_sparse(const Steps& steps, int output, int count) {
  put_values(steps, output);
  const std::int64_t rank = single_ ? 2 : 3;
  auto* index = c_.allocate_output(output - count, Shape{steps.values, rank}).data<std::int64_t>();
  for (std::int64_t record = 0; record < batch(); ++record) {
    const std::size_t begin = steps.begin[static_cast<std::size_t>(record)];
    const std::size_t end = steps.begin[static_cast<std::size_t>(record) + 1];
    for (std::size_t i = begin; i < end; ++i) {
      for (std::int64_t k = 0; k < steps.all[i].count; ++k) {
        if (!single_) *index++ = record;
        *index++ = static_cast<std::int64_t>(i - begin);
        *index++ = k;
      }
    }
  }
  auto* shape = c_.allocate_output(output + count, Shape{rank}).data<std::int64_t>();
  if (!single_) *shape++ = batch();
  *shape++ = steps.longest;
  *shape = steps.widest;
}

void SequenceParser::put_dense(const Steps& steps, const PartialShape& shape, bool assumed_empty,
                               int output, int length_output) {
  Shape whole;
  if (!single_) whole.add_dim(batch());
  whole.add_dim(steps.longest);
  std::int64_t stride = 1;
  bool known = shape.has_rank();
  for (int axis = 0; known && axis < shape.rank(); ++axis) known = shape.dim(axis) >= 0;
  if (!known) {
    throw InvalidArgumentError(cat("The dense shape of feature list ", steps.key,
                                   " is not fully defined: ", shape.to_string()));
  }
  for (const std::int64_t dim : shape.dims()) {
    whole.add_dim(dim);
    stride = checked_multiply(stride, dim);
  }
  for (std::size_t record = 0; record < records_.size(); ++record) {
    if (!steps.found[record] && !assumed_empty) {
      fail(
          record, steps.key,
          "The feature list is required but could not be found.  Set its allow_missing (of the op: "
          "feature_list_dense_missing_assumed_empty) if it may be missing.");
    }
    for (std::size_t i = steps.begin[record]; i < steps.begin[record + 1]; ++i) {
      if (steps.all[i].count == stride) continue;
      fail(record, steps.key,
           cat("Number of values != expected.  values size: ", steps.all[i].count,
               " but output shape: ", shape.to_string()));
    }
  }
  Array& values = c_.allocate_output(output, whole);
  with_type(values.dtype(), [&](auto type) {
    using T = decltype(type);
    T* out = values.data<T>();
    for (std::size_t record = 0; record < records_.size(); ++record) {
      T* to = out + static_cast<std::int64_t>(record) * steps.longest * stride;
      T* const end = to + steps.longest * stride;
      for (std::size_t i = steps.begin[record]; i < steps.begin[record + 1]; ++i, to += stride) {
        copy(steps, steps.all[i], to);
      }
      std::fill(to, end, T());
    }
  });
  if (length_output < 0) return;
  auto* lengths =
      c_.allocate_output(length_output, single_ ? Shape{} : Shape{batch()}).data<std::int64_t>();
  for (std::size_t record = 0; record < records_.size(); ++record) {
    lengths[record] = static_cast<std::int64_t>(steps.begin[record + 1] - steps.begin[record]);
  }
}

template <class T>
void SequenceParser::put_splits(const Steps& steps, int outer, int inner) {
  Array& records = c_.allocate_output(outer, single_ ? Shape{} : Shape{batch() + 1});
  for (std::int64_t i = 0; i < records.num_elements(); ++i) {
    records.data<T>()[i] = static_cast<T>(steps.begin[static_cast<std::size_t>(i)]);
  }
  T* out = c_.allocate_output(inner, Shape{static_cast<std::int64_t>(steps.all.size()) + 1})
               .template data<T>();
  std::int64_t at = 0;
  *out++ = 0;
  for (const Located& step : steps.all) {
    at += step.count;
    *out++ = static_cast<T>(at);
  }
}

void SequenceParser::put_ragged(const Steps& steps, int output, int count) {
  put_values(steps, output);
  if (c_.output_dtype(output + count) == DType::kInt64) {
    return put_splits<std::int64_t>(steps, output + count, output + 2 * count);
  }
  if (steps.values > INT32_MAX || steps.all.size() > INT32_MAX) {
    throw InvalidArgumentError("There are more values than int32 row splits can count.");
  }
  put_splits<std::int32_t>(steps, output + count, output + 2 * count);
}

}  // namespace tandem::cpu
