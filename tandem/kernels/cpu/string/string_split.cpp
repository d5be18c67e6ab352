// Strings into pieces, and pieces into strings.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

void join(KernelContext& c) {
  const auto& separator = c.attr<std::string>("separator");
  Shape shape;
  bool found = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& own = c.input(i).shape();
    if (own.rank() == 0) continue;
    if (found && !(own == shape)) {
      throw InvalidArgumentError(cat("Input shapes do not match: ", shape, " vs. ", own));
    }
    shape = own;
    found = true;
  }
  Array& out = c.allocate_output(0, shape);
  std::string* to = out.data<std::string>();
  for (std::int64_t k = 0; k < shape.num_elements(); ++k) {
    std::string& joined = to[k];
    joined.clear();
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Array& in = c.input(i);
      if (i > 0) joined += separator;
      joined += in.data<std::string>()[in.rank() == 0 ? 0 : k];
    }
  }
}

using Pieces = std::vector<std::string_view>;

// Splits every string of input 0 by `run(string, pieces)` and sets the three outputs.
template <class Run>
void split_all(KernelContext& c, Run run) {
  const Array& in = c.input(0);
  Pieces pieces;
  std::vector<std::size_t> ends;
  std::size_t most = 0;
  for (const std::string& s : in.values<std::string>()) {
    const std::size_t begin = pieces.size();
    run(s, pieces);
    ends.push_back(pieces.size());
    most = std::max(most, pieces.size() - begin);
  }
  const auto count = static_cast<std::int64_t>(pieces.size());
  std::int64_t* indices = c.allocate_output(0, Shape{count, 2}).data<std::int64_t>();
  std::string* values = c.allocate_output(1, Shape{count}).data<std::string>();
  std::int64_t* shape = c.allocate_output(2, Shape{2}).data<std::int64_t>();
  std::size_t k = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    for (std::int64_t place = 0; k < ends[row]; ++k, ++place) {
      indices[2 * k] = static_cast<std::int64_t>(row);
      indices[2 * k + 1] = place;
      values[k] = pieces[k];
    }
  }
  shape[0] = in.num_elements();
  shape[1] = static_cast<std::int64_t>(most);
}

void require_vector_and_scalar(const KernelContext& c, const char* separator) {
  if (c.input(0).rank() != 1) {
    throw InvalidArgumentError(cat("input must be a vector, got shape: ", c.input(0).shape()));
  }
  if (c.input(1).rank() != 0) {
    throw InvalidArgumentError(
        cat(separator, " must be a scalar, got shape: ", c.input(1).shape()));
  }
}

void split(KernelContext& c) {
  require_vector_and_scalar(c, "delimiter");
  const bool skip_empty = c.attr<bool>("skip_empty");
  const std::string delimiters = *c.input(1).data<std::string>();
  split_all(c, [&](std::string_view s, Pieces& pieces) {
    if (delimiters.empty()) {
      for (std::size_t i = 0; i < s.size(); ++i) pieces.push_back(s.substr(i, 1));
      return;
    }
    for (bool more = !s.empty(); more;) {
      const std::size_t end = s.find_first_of(delimiters);
      const std::string_view piece = s.substr(0, end);
      if (!skip_empty || !piece.empty()) pieces.push_back(piece);
      more = end != std::string_view::npos;
      if (more) s.remove_prefix(end + 1);
    }
  });
}

void split_at_space(std::string_view s, std::int64_t maxsplit, Pieces& pieces) {
  const auto skip = [&] {
    while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  };
  skip();
  for (std::int64_t splits = 0; !s.empty();) {
    const auto* end = std::find_if(s.begin(), s.end(), [](char c) { return is_space(c); });
    const auto size = static_cast<std::size_t>(end - s.begin());
    pieces.push_back(s.substr(0, size));
    s.remove_prefix(size);
    skip();
    if (++splits == maxsplit) return pieces.push_back(s);
  }
}

void split_v2(KernelContext& c) {
  require_vector_and_scalar(c, "sep");
  const auto maxsplit = c.attr<std::int64_t>("maxsplit");
  const std::string separator = *c.input(1).data<std::string>();
  split_all(c, [&](std::string_view s, Pieces& pieces) {
    if (maxsplit == 0) return pieces.push_back(s);
    if (separator.empty()) return split_at_space(s, maxsplit, pieces);
    std::int64_t splits = 0;
    for (std::size_t end = s.find(separator);
         end != std::string_view::npos && (maxsplit < 0 || splits < maxsplit);
         end = s.find(separator), ++splits) {
      pieces.push_back(s.substr(0, end));
      s.remove_prefix(end + separator.size());
    }
    pieces.push_back(s);
  });
}

// ---- Joins along axes ----

void reduce_join(KernelContext& c) {
  const Array& in = c.input(0);
  const Array& indices = c.input(1);
  const Shape& shape = in.shape();
  const int rank = shape.rank();
  const auto& separator = c.attr<std::string>("separator");
  const bool keep = c.attr<bool>("keep_dims");
  std::vector<bool> reduced(static_cast<std::size_t>(rank));
  std::vector<int> order;
  for (const std::int32_t index : indices.values<std::int32_t>()) {
    if (index < -rank || index >= rank) {
      throw OutOfRangeError(
          cat("Invalid reduction dimension ", index, " for input with ", rank, " dimension(s)"));
    }
    const int axis = index < 0 ? index + rank : index;
    if (reduced[static_cast<std::size_t>(axis)]) {
      throw InvalidArgumentError(cat("Duplicate reduction dimension ", index));
    }
    reduced[static_cast<std::size_t>(axis)] = true;
    order.push_back(axis);
  }
  if (order.empty()) return c.set_output(0, in);
  std::reverse(order.begin(), order.end());  // the first axis given is joined first

  std::vector<std::int64_t> stride(static_cast<std::size_t>(rank));
  std::int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    stride[static_cast<std::size_t>(i)] = step;
    step *= shape[i];
  }
  Shape out_shape;
  std::vector<int> kept;
  for (int i = 0; i < rank; ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) {
      out_shape.add_dim(shape[i]);
      kept.push_back(i);
    } else if (keep) {
      out_shape.add_dim(1);
    }
  }
  std::int64_t joined = 1;
  for (const int axis : order) joined *= shape[axis];
  // The offset of place k among the axes of a list, of which the last one varies fastest.
  const auto offset = [&](const std::vector<int>& axes, std::int64_t k) {
    std::int64_t at = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      at += k % shape[*axis] * stride[static_cast<std::size_t>(*axis)];
      k /= shape[*axis];
    }
    return at;
  };
  Array& out = c.allocate_output(0, out_shape);
  const std::string* from = in.data<std::string>();
  std::string* to = out.data<std::string>();
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    const std::int64_t base = offset(kept, i);
    to[i].clear();
    for (std::int64_t k = 0; k < joined; ++k) {
      if (k > 0) to[i] += separator;
      to[i] += from[base + offset(order, k)];
    }
  }
}

void segment_join(KernelContext& c) {
  const Array &in = c.input(0), &ids = c.input(1);
  const auto& separator = c.attr<std::string>("separator");
  const std::int64_t segments = scalar_int_input(c, 2, "num_segments");
  if (segments < 0) {
    throw InvalidArgumentError(cat("Number of segments must be non-negative but got ", segments));
  }
  if (ids.rank() == 0) throw InvalidArgumentError("Segment_id cannot have rank 0");
  if (ids.rank() > in.rank()) {
    throw InvalidArgumentError(
        cat("Segment_ids of shape ", ids.shape(), " do not fit inputs of shape ", in.shape()));
  }
  for (int i = 0; i < ids.rank(); ++i) {
    if (ids.shape()[i] != in.shape()[i]) {
      throw InvalidArgumentError(cat("Segment dimension is ", ids.shape()[i],
                                     " while input dimension is ", in.shape()[i], " in rank ", i));
    }
  }
  Shape shape{segments};
  for (int i = ids.rank(); i < in.rank(); ++i) shape.add_dim(in.shape()[i]);
  const std::int64_t inner = in.shape().product(ids.rank(), in.rank());
  Array& out = c.allocate_output(0, shape);
  const std::string* from = in.data<std::string>();
  std::string* to = out.data<std::string>();
  for (std::int64_t i = 0; i < out.num_elements(); ++i) to[i].clear();
  for (std::int64_t i = 0; i < ids.num_elements(); ++i) {
    const std::int64_t id =
        ids.dtype() == DType::kInt32 ? ids.data<std::int32_t>()[i] : ids.data<std::int64_t>()[i];
    if (id < 0 || id >= segments) {
      throw InvalidArgumentError(
          cat("segment_ids are not allowed to exceed num_segments or to have negative values: ", id,
              " of ", segments));
    }
    for (std::int64_t k = 0; k < inner; ++k) {
      std::string& segment = to[id * inner + k];
      if (!segment.empty()) segment += separator;  // none after empty strings, as TensorFlow
      segment += from[i * inner + k];
    }
  }
}

const KernelRegistration kJoin{{.op = "StringJoin", .run = join}};
const KernelRegistration kSplit{{.op = "StringSplit", .run = split}};
const KernelRegistration kSplitV2{{.op = "StringSplitV2", .run = split_v2}};
const KernelRegistration kReduceJoin{{.op = "ReduceJoin", .run = reduce_join}};
const KernelRegistration kSegmentJoin{{.op = "UnsortedSegmentJoin", .run = segment_join}};

}  // namespace
}  // namespace tandem::cpu
