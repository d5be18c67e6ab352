#include "tandem/graph/internal/collective_work.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/core/half.h"

namespace tandem {
namespace {

using Reduction = Collectives::Reduction;

template <class T>
inline constexpr bool kIsShort = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Integers wrap around.
template <class T>
T combine(Reduction reduction, T a, T b) {
  if constexpr (kIsShort<T>) {
    return T(combine(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (reduction) {
      case Reduction::kMax: return std::max(a, b);
      case Reduction::kMin: return std::min(a, b);
      case Reduction::kProduct: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
      default: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
  } else {
    switch (reduction) {
      case Reduction::kMax: return std::max(a, b);
      case Reduction::kMin: return std::min(a, b);
      case Reduction::kProduct: return a * b;
      default: return a + b;
    }
  }
}

template <class T>
void reduce_into(Array& sum, const Array& next, Reduction reduction) {
  T* to = sum.data<T>();
  const T* from = next.data<T>();
  for (std::int64_t i = 0; i < sum.num_elements(); ++i) to[i] = combine(reduction, to[i], from[i]);
}

template <class T>
void divide(Array& sum, int by) {
  T* to = sum.data<T>();
  for (std::int64_t i = 0; i < sum.num_elements(); ++i) {
    if constexpr (kIsShort<T>) {
      to[i] = T(static_cast<float>(to[i]) / static_cast<float>(by));
    } else {
      to[i] /= static_cast<T>(by);
    }
  }
}

// Calls `body` with a value of that type.
template <class Body>
void with_number(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat: return body(float{});
    case DType::kDouble: return body(double{});
    case DType::kHalf: return body(Half{});
    case DType::kBFloat16: return body(BFloat16{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kInt64: return body(std::int64_t{});
    default:
      throw UnimplementedError(cat(
          "An all-reduce takes float, double, half, bfloat16, int32 and int64, not ", dtype, "."));
  }
}

Array reduced(const std::vector<Array>& inputs, Reduction reduction) {
  Array result = inputs[0].clone();
  with_number(result.dtype(), [&](auto number) {
    using T = decltype(number);
    for (std::size_t i = 1; i < inputs.size(); ++i) reduce_into<T>(result, inputs[i], reduction);
    if (reduction == Reduction::kMean) divide<T>(result, static_cast<int>(inputs.size()));
  });
  return result;
}

Array gathered(const std::vector<Array>& inputs, const Shape& shape) {
  Array result(inputs[0].dtype(), shape);
  auto* to = static_cast<char*>(result.raw_data());
  for (const Array& input : inputs) {
    if (input.num_bytes() != 0) std::memcpy(to, input.raw_data(), input.num_bytes());
    to += input.num_bytes();
  }
  return result;
}

Shape check_reduce(const std::vector<CollectiveMember>& members) {
  const Array& first = members[0].input;
  for (const CollectiveMember& member : members) {
    const Array& input = member.input;
    if (input.dtype() == first.dtype() && input.shape() == first.shape()) continue;
    throw InvalidArgumentError(cat("The members of an all-reduce give ", first.dtype(),
                                   first.shape(), " and ", input.dtype(), input.shape(),
                                   ": dtypes and shapes must agree."));
  }
  with_number(first.dtype(), [](auto) {});
  return first.shape();
}

Shape check_scatter(const std::vector<CollectiveMember>& members) {
  const Shape whole = check_reduce(members);
  const auto parts = static_cast<std::int64_t>(members.size());
  if (whole.rank() == 0 || whole[0] % parts != 0) {
    throw InvalidArgumentError(cat("The members of a reduce-scatter give ", whole,
                                   ", whose first size must be a multiple of ", parts,
                                   ", the number of members."));
  }
  std::vector<std::int64_t> dims = whole.to_vector();
  dims[0] /= parts;
  return Shape(dims);
}

std::vector<Array> scattered(const Array& whole, const Shape& shape, std::size_t parts) {
  std::vector<Array> results;
  const auto* from = static_cast<const char*>(whole.raw_data());
  for (std::size_t i = 0; i < parts; ++i) {
    Array part(whole.dtype(), shape);
    if (part.num_bytes() != 0) std::memcpy(part.raw_data(), from, part.num_bytes());
    from += part.num_bytes();
    results.push_back(std::move(part));
  }
  return results;
}

Shape check_gather(const std::vector<CollectiveMember>& members) {
  const Array& first = members[0].input;
  std::int64_t rows = 0;
  for (const CollectiveMember& member : members) {
    const Array& input = member.input;
    const bool fits = input.rank() > 0 && input.rank() == first.rank() &&
                      input.dtype() == first.dtype() && !is_object(input.dtype()) &&
                      std::equal(input.shape().dims().begin() + 1, input.shape().dims().end(),
                                 first.shape().dims().begin() + 1);
    if (!fits) {
      throw InvalidArgumentError(cat("The members of an all-gather give ", first.dtype(),
                                     first.shape(), " and ", input.dtype(), input.shape(),
                                     ": only the first sizes may differ."));
    }
    rows += input.shape()[0];
  }
  std::vector<std::int64_t> dims = first.shape().to_vector();
  dims[0] = rows;
  return Shape(dims);
}

}  // namespace

int source_of(const std::vector<CollectiveMember>& members) {
  int source = -1, sources = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].input.valid()) continue;
    source = static_cast<int>(i);
    ++sources;
  }
  if (sources != 1) {
    throw InvalidArgumentError(cat("A broadcast has one member that sends, but this group of ",
                                   members.size(), " has ", sources, '.'));
  }
  return source;
}

Shape check_collective(const CollectiveWork& work, const std::vector<CollectiveMember>& members) {
  switch (work.kind) {
    case CollectiveWork::kGather: return check_gather(members);
    case CollectiveWork::kScatter: return check_scatter(members);
    case CollectiveWork::kBroadcast:
      return members[static_cast<std::size_t>(source_of(members))].input.shape();
    case CollectiveWork::kReduce: break;
  }
  return check_reduce(members);
}

std::vector<Array> compute_collective(const CollectiveWork& work, const std::vector<Array>& inputs,
                                      const Shape& shape) {
  const auto for_all = [&](const Array& result) {
    return std::vector<Array>(inputs.size(), result);
  };
  switch (work.kind) {
    case CollectiveWork::kGather: return for_all(gathered(inputs, shape));
    case CollectiveWork::kBroadcast:
      return for_all(std::find_if(inputs.begin(), inputs.end(), [](const Array& a) {
                       return a.valid();
                     })->clone());
    case CollectiveWork::kScatter:
      return scattered(reduced(inputs, work.reduction), shape, inputs.size());
    case CollectiveWork::kReduce: break;
  }
  return for_all(reduced(inputs, work.reduction));
}

}  // namespace tandem
