#include "tandem/kernels/cpu/linalg/matrix_ways.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "tandem/core/machine.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel_choice.h"
#include "tandem/kernels/cpu/linalg/matrix_pieces.h"
#include "tandem/kernels/cpu/support/kernel_tuner.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

// A part of a product that is small enough to be measured: the same memory read as smaller
// matrices.
MatrixProduct part_to_measure(MatrixProduct p) {
  while (multiplications(p) > tuning::kMaxMeasured) {
    std::int64_t* const sizes[] = {&p.m, &p.n, &p.k};
    std::int64_t* const largest =
        p.batch > 1 ? &p.batch
                    : *std::max_element(std::begin(sizes), std::end(sizes),
                                        [](const auto* a, const auto* b) { return *a < *b; });
    *largest /= 2;
  }
  if (p.batch == 1) p.a_once = p.b_once = true;
  return p;
}

ProblemClass class_of(const MatrixProduct& p, int threads) {
  ProblemClass of{Problem::kMatMul, p.dtype, 0, threads, {p.m, p.n, p.k, p.batch}};
  of.layout = static_cast<std::uint8_t>((p.transpose_a ? 1 : 0) | (p.transpose_b ? 2 : 0));
  return of;
}

FloatWay float_way(KernelContext& context, const MatrixProduct& p) {
  const FloatWay assumed = assumed_float_way(p, threads_to_cut_for(context));
  KernelTuner* const tuner =
      multiplications(p) < tuning::kMinMeasured ? nullptr : tuner_for(context);
  if (!tuner) return assumed;
  const MatrixProduct part = part_to_measure(p);
  const ProblemClass of = class_of(part, context.intra_op().threads());
  if (const int known = tuner->known(of); known >= 0) return static_cast<FloatWay>(known);
  return static_cast<FloatWay>(tuner->choose(
      of, kFloatWays, static_cast<int>(assumed),
      [&](int way) { return multiply_in_library(context, part, static_cast<FloatWay>(way)); }));
}

Float16Way float16_way(KernelContext& context, const MatrixProduct& p) {
  const Float16Way assumed = assumed_float16_way(p);
  KernelTuner* const tuner =
      multiplications(p) < tuning::kMinMeasured ? nullptr : tuner_for(context);
  if (!tuner) return assumed;
  const MatrixProduct part = part_to_measure(p);
  const ProblemClass of = class_of(part, context.intra_op().threads());
  if (const int known = tuner->known(of); known >= 0) return static_cast<Float16Way>(known);
  return static_cast<Float16Way>(tuner->choose(
      of, kFloat16Ways, static_cast<int>(assumed),
      [&](int way) { return multiply_float16(context, part, static_cast<Float16Way>(way)); }));
}

// ---- What `explain` shows. ----

std::optional<MatrixProduct> product_of(const Node& node) {
  if (node.inputs().size() < 2) return std::nullopt;
  const auto shape_of = [&](std::size_t i) -> const PartialShape& {
    const Output& in = node.inputs()[i];
    return in.node->output_shape(in.index);
  };
  const PartialShape &a = shape_of(0), &b = shape_of(1);
  if (!a.is_fully_known() || !b.is_fully_known() || a.rank() < 2 || b.rank() < 2)
    return std::nullopt;
  const bool batched = node.attrs().find("adj_x") != nullptr;
  MatrixProduct p;
  p.dtype = node.output_dtype(0);
  p.transpose_a = node.attr<bool>(batched ? "adj_x" : "transpose_a");
  p.transpose_b = node.attr<bool>(batched ? "adj_y" : "transpose_b");
  p.m = a.dim(p.transpose_a ? -1 : -2);
  p.k = a.dim(p.transpose_a ? -2 : -1);
  p.n = b.dim(p.transpose_b ? -2 : -1);
  const PartialShape& result = node.output_shape(0);
  if (!result.is_fully_known() || p.m <= 0 || p.n <= 0 || p.k <= 0) return std::nullopt;
  p.batch = result.num_elements() / (p.m * p.n);
  if (p.batch == 0) return std::nullopt;
  if (b.num_elements() == p.k * p.n && p.batch > 1 && !p.transpose_a &&
      a.num_elements() == p.batch * p.m * p.k) {
    p.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

std::optional<KernelChoice> describe(const Node& node) {
  const DType dtype = node.output_dtype(0);
  const bool wide = dtype == DType::kFloat;
  if (!wide && dtype != DType::kBFloat16 && dtype != DType::kHalf) return std::nullopt;
  const auto p = product_of(node);
  if (!p) return std::nullopt;
  const int threads = machine_limits().processors;
  const ProblemClass of = class_of(part_to_measure(*p), threads);
  const KernelTuner& tuner = KernelTuner::process();
  return wide ? tuner.describe(of, kFloatWays, static_cast<int>(assumed_float_way(*p, threads)))
              : tuner.describe(of, kFloat16Ways, static_cast<int>(assumed_float16_way(*p)));
}

const KernelChoiceRegistration kChoices[] = {
    KernelChoiceRegistration("MatMul", "cpu", describe),
    KernelChoiceRegistration("BatchMatMul", "cpu", describe),
    KernelChoiceRegistration("BatchMatMulV2", "cpu", describe),
    KernelChoiceRegistration("BatchMatMulV3", "cpu", describe),
};

}  // namespace

void multiply_floats_best(KernelContext& context, const MatrixProduct& product) {
  multiply_floats(context, product, float_way(context, product));
}

void multiply_matrices_float(KernelContext& context, const MatrixProduct& product) {
  if (product.dtype == DType::kFloat) return multiply_floats_best(context, product);
  if (multiply_float16(context, product, float16_way(context, product))) return;
  multiply_float16(context, product, Float16Way::kThroughFloat);
}

}  // namespace tandem::cpu
