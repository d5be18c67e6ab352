#include "tandem/core/shape.h"

#include <algorithm>
#include <ostream>

#include "tandem/core/error.h"

namespace tandem {

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw InvalidArgumentError(
        cat("The sizes ", a, " and ", b, " multiply to more than 2^63 elements."));
  }
  return product;
}

Shape::Shape(std::span<const std::int64_t> dims) { assign(dims); }

void Shape::assign(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank)) {
    throw InvalidArgumentError(cat("A shape of rank ", dims.size(), " is more than the ", kMaxRank,
                                   " dimensions allowed."));
  }
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t d : dims) {
    if (d < 0) {
      throw InvalidArgumentError(cat("Dimension ", d, " must be >= 0 in a shape.",
                                     d == -1 ? " A size that is not known yet (-1, td::none) can "
                                               "stand in a PartialShape only: what is made of it, "
                                               "such as a weight, needs the size itself."
                                             : ""));
    }
    // A zero must not hide that the others overflow: the product of the non-zero sizes has to fit
    // as well.
    empty = empty || d == 0;
    count = checked_multiply(count, d == 0 ? 1 : d);
  }
  std::unique_ptr<std::int64_t[]> heap;
  if (dims.size() > static_cast<std::size_t>(kInline)) heap.reset(new std::int64_t[dims.size()]);
  std::copy(dims.begin(), dims.end(), heap ? heap.get() : inline_);
  heap_ = std::move(heap);
  rank_ = static_cast<int>(dims.size());
  count_ = empty ? 0 : count;
}

Shape& Shape::assign_slow(const Shape& other) {
  if (this != &other) assign(other.dims());
  return *this;
}

std::int64_t Shape::dim(int axis) const { return data()[normalize_axis(axis, rank_)]; }

std::int64_t Shape::product(int begin, int end) const {
  std::int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= data()[i];
  return count;
}

void Shape::set_dim(int axis, std::int64_t size) {
  std::vector<std::int64_t> dims = to_vector();
  dims.at(static_cast<std::size_t>(normalize_axis(axis, rank_))) = size;
  assign(dims);
}

void Shape::add_dim(std::int64_t size) {
  std::vector<std::int64_t> dims = to_vector();
  dims.push_back(size);
  assign(dims);
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) text += ",";
    text += std::to_string(data()[i]);
  }
  return text + "]";
}

PartialShape::PartialShape(std::vector<std::int64_t> dims)
    : known_rank_(true), dims_(std::move(dims)) {
  if (dims_.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    throw InvalidArgumentError(cat("A shape of rank ", dims_.size(), " is more than the ",
                                   Shape::kMaxRank, " dimensions allowed."));
  }
  for (std::int64_t d : dims_) {
    if (d < kUnknown)
      throw InvalidArgumentError(cat("Dimension ", d, " must be >= -1 in a partial shape."));
  }
}

PartialShape PartialShape::unknown_of_rank(int rank) {
  return PartialShape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), kUnknown));
}

std::int64_t PartialShape::dim(int axis) const {
  if (!known_rank_) return kUnknown;
  return dims_[static_cast<std::size_t>(normalize_axis(axis, rank()))];
}

bool PartialShape::is_fully_known() const {
  return known_rank_ &&
         std::all_of(dims_.begin(), dims_.end(), [](std::int64_t d) { return d >= 0; });
}

Shape PartialShape::to_shape() const {
  if (!is_fully_known()) {
    throw FailedPreconditionError(cat("The shape ", to_string(), " is not fully known here."));
  }
  return Shape(std::span<const std::int64_t>(dims_));
}

std::int64_t PartialShape::num_elements() const {
  return is_fully_known() ? to_shape().num_elements() : kUnknown;
}

bool PartialShape::is_compatible(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

bool PartialShape::is_compatible(const Shape& shape) const {
  if (!known_rank_) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t size = dims_[static_cast<std::size_t>(i)];
    if (size >= 0 && size != shape[i]) return false;
  }
  return true;
}

PartialShape PartialShape::merge(const PartialShape& other) const {
  if (!is_compatible(other)) {
    throw InvalidArgumentError(
        cat("Shapes ", to_string(), " and ", other.to_string(), " are not compatible."));
  }
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  PartialShape merged = *this;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (merged.dims_[i] < 0) merged.dims_[i] = other.dims_[i];
  }
  return merged;
}

PartialShape PartialShape::relax(const PartialShape& other) const {
  if (rank() != other.rank() || !known_rank_) return unknown();
  PartialShape relaxed = *this;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (relaxed.dims_[i] != other.dims_[i]) relaxed.dims_[i] = kUnknown;
  }
  return relaxed;
}

std::string PartialShape::to_string() const {
  if (!known_rank_) return "<unknown>";
  std::string text = "[";
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (i) text += ",";
    text += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  return text + "]";
}

namespace {

template <class A>
[[noreturn]] void throw_incompatible(const A& a, const A& b) {
  throw InvalidArgumentError(cat("Incompatible shapes: ", a, " vs. ", b,
                                 ". Sizes must be equal or 1, compared from the last dimension."));
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  if (a == b || b.rank() == 0) return a;
  if (a.rank() == 0) return b;
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) throw_incompatible(a, b);
    dims[static_cast<std::size_t>(i)] = da == 1 ? db : da;
  }
  return Shape(std::span<const std::int64_t>(dims));
}

PartialShape broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t da = ia < 0 ? 1 : a.dim(ia), db = ib < 0 ? 1 : b.dim(ib);
    std::int64_t d = PartialShape::kUnknown;
    if (da == 1) {
      d = db;
    } else if (db == 1) {
      d = da;
    } else if (da >= 0 && db >= 0) {
      if (da != db) throw_incompatible(a, b);
      d = da;
    } else {
      d = std::max(da, db);  // one is known and not 1, so it wins; both unknown stays unknown
    }
    dims[static_cast<std::size_t>(i)] = d;
  }
  return PartialShape(std::move(dims));
}

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    throw InvalidArgumentError(cat("Axis ", axis, " is out of range [", -rank, ", ", rank,
                                   ") for a value of rank ", rank, "."));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }
std::ostream& operator<<(std::ostream& out, const PartialShape& shape) {
  return out << shape.to_string();
}

}  // namespace tandem
