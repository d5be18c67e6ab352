#pragma once

// Graphs of the form that cuDNN's engines for attention know, computed operation by operation:
// softmax(scale query keyᵀ + bias) value.

#include <cmath>
#include <limits>

#include "tests/cuda/cudnn_descriptors.h"

namespace stand_in {

/// Matrices of batches and heads: products, and what is done to their entries and rows.
class AttentionProgram {
 public:
  /// Null if the operations are not such a graph, or break a rule of the engines.
  static std::shared_ptr<const AttentionProgram> read(
      const std::vector<std::shared_ptr<Data>>& operations) {
    auto program = std::make_shared<AttentionProgram>();
    for (const auto& one : operations) {
      if (!program->add(*one)) return nullptr;
    }
    return program->keeps_rules() ? program : nullptr;
  }

  /// All that must be given an address, the result too.
  const std::map<std::int64_t, Tensor>& operands() const { return operands_; }

  /// `numbers` are those that the host gave by value.
  void run(const std::map<std::int64_t, void*>& at,
           const std::map<std::int64_t, float>& numbers) const {
    std::map<std::int64_t, Values> values;
    for (const auto& [id, tensor] : operands_) values.emplace(id, loaded(tensor, at, numbers));
    for (const Step& step : steps_) {
      const Values& x = values.at(step.x);
      const Values* const with = step.has_with ? &values.at(step.with) : nullptr;
      Values y(step.y.sizes);
      if (step.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        y.each([&](const Place& i) {
          double sum = 0;
          for (std::int64_t k = 0; k < x.sizes[3]; ++k)
            sum += x.at({i[0], i[1], i[2], k}) * with->at({i[0], i[1], k, i[3]});
          y.at(i) = sum;
        });
      } else if (step.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
        const bool most = step.mode == CUDNN_REDUCE_TENSOR_MAX;
        for (double& one : y.all) one = most ? -std::numeric_limits<double>::infinity() : 0;
        x.each([&](const Place& i) {
          double& to = y.at(i);
          to = most ? std::max(to, x.at(i)) : to + x.at(i);
        });
      } else {
        y.each([&](const Place& i) {
          y.at(i) = pointwise(step.mode, x.at(i), with ? with->at(i) : 0);
        });
      }
      y.each([&](const Place& i) {  // as the element is stored
        double buffer = 0;
        put(&buffer, step.y.number, 0, y.at(i));
        y.at(i) = element(&buffer, step.y.number, 0);
      });
      if (!step.y.is_virtual) {
        y.each([&](const Place& i) {
          put(at.at(step.y.id), step.y.number, offset(step.y, i), y.at(i));
        });
      }
      values.insert_or_assign(step.y.id, std::move(y));
    }
  }

 private:
  using Place = std::array<std::int64_t, 4>;
  struct Values {
    Shape sizes;
    std::vector<double> all;

    explicit Values(const Shape& of)
        : sizes(of), all(static_cast<std::size_t>(of[0] * of[1] * of[2] * of[3])) {}
    std::size_t number(const Place& i) const {  // axes of fewer entries repeat theirs
      std::int64_t number = 0;
      for (std::size_t axis = 0; axis < 4; ++axis)
        number = number * sizes[axis] + i[axis] % sizes[axis];
      return static_cast<std::size_t>(number);
    }
    double& at(const Place& i) { return all[number(i)]; }
    double at(const Place& i) const { return all[number(i)]; }
    template <class Visit>
    void each(Visit visit) const {
      Place i{};
      for (i[0] = 0; i[0] < sizes[0]; ++i[0])
        for (i[1] = 0; i[1] < sizes[1]; ++i[1])
          for (i[2] = 0; i[2] < sizes[2]; ++i[2])
            for (i[3] = 0; i[3] < sizes[3]; ++i[3]) visit(i);
    }
  };
  struct Step {
    cudnnBackendDescriptorType_t kind;
    int mode;
    std::int64_t x, with;
    bool has_with;
    Tensor y;
  };

  static double pointwise(int mode, double x, double with) {
    switch (mode) {
      case CUDNN_POINTWISE_ADD: return x + with;
      case CUDNN_POINTWISE_MUL: return x * with;
      case CUDNN_POINTWISE_DIV: return x / with;
      case CUDNN_POINTWISE_SUB: return x - with;
      default: return std::exp(x);
    }
  }
  static std::int64_t offset(const Tensor& t, const Place& i) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) offset += i[axis] * t.strides[axis];
    return offset;
  }
  static Values loaded(const Tensor& t, const std::map<std::int64_t, void*>& at,
                       const std::map<std::int64_t, float>& numbers) {
    Values values(t.sizes);
    const void* const from =
        t.is_by_value ? static_cast<const void*>(&numbers.at(t.id)) : at.at(t.id);
    values.each([&](const Place& i) { values.at(i) = element(from, t.number, offset(t, i)); });
    return values;
  }

  bool add(const Data& operation) {
    struct Names {
      cudnnBackendDescriptorType_t kind;
      cudnnBackendAttributeName_t how, mode, x, with, y;
    };
    constexpr Names kNames[] = {
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
         CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
         CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
         CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
         CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC}};
    for (const Names& names : kNames) {
      if (names.kind != operation.type) continue;
      const Data* const how = operation.part(names.how);
      const auto mode = how ? how->one<int>(names.mode) : std::nullopt;
      const auto x = tensor_of(operation.part(names.x)), y = tensor_of(operation.part(names.y));
      const auto with = tensor_of(operation.part(names.with));
      if (!mode || !x || !y || !take(*x) || (with && !take(*with)) || y->sizes.size() != 4)
        return false;
      const bool product = names.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
      if (product && (!with || x->sizes[3] != with->sizes[2] || y->sizes[2] != x->sizes[2] ||
                      y->sizes[3] != with->sizes[3]))
        return false;
      steps_.push_back({names.kind, *mode, x->id, with ? with->id : 0, with.has_value(), *y});
      (y->is_virtual ? results_ : operands_)[y->id] = *y;
      return true;
    }
    return false;
  }
  // An input, or a result of an earlier operation.
  bool take(const Tensor& t) {
    if (t.sizes.size() != 4) return false;
    if (t.is_virtual) return results_.count(t.id) == 1;
    operands_[t.id] = t;
    return true;
  }

  // What the engines ask for beside the form: 16-bit floats whose rows lie without gaps and are
  // multiples of 8 wide, probabilities of their type, and a bias for each query and key.
  bool keeps_rules() const {
    constexpr auto kProduct = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    if (steps_.size() < 7 || steps_.front().kind != kProduct || steps_.back().kind != kProduct ||
        steps_.back().y.is_virtual)
      return false;
    const Tensor& query = operands_.at(steps_.front().x);
    const Tensor& key = operands_.at(steps_.front().with);
    const Tensor& value = operands_.at(steps_.back().with);
    const Tensor& result = steps_.back().y;
    const Tensor& scores = steps_.front().y;
    const auto fits = [&](const Tensor& t, std::size_t row_axis) {
      return (t.number == Number::kHalf || t.number == Number::kBFloat16) &&
             t.number == query.number && t.strides[row_axis] == 1 && t.sizes[row_axis] % 8 == 0 &&
             t.sizes[row_axis] <= 256 && t.sizes[0] == query.sizes[0];
    };
    bool biases_fit = true;
    for (const Step& step : steps_) {
      const auto with = operands_.find(step.with);
      if (step.kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
          step.mode != CUDNN_POINTWISE_ADD || with == operands_.end())
        continue;
      biases_fit = biases_fit && with->second.sizes[2] == scores.sizes[2] &&
                   with->second.sizes[3] == scores.sizes[3];
    }
    return biases_fit && fits(query, 3) && fits(key, 2) && fits(value, 3) && fits(result, 3) &&
           results_.at(steps_.back().x).number == query.number;
  }

  std::vector<Step> steps_;
  std::map<std::int64_t, Tensor> operands_, results_;
};

}  // namespace stand_in
