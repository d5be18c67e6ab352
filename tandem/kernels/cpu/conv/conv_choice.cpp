#include "tandem/kernels/cpu/conv/conv_choice.h"

#include <optional>

#include "tandem/core/error.h"
#include "tandem/core/machine.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel_choice.h"
#include "tandem/kernels/cpu/conv/conv_product.h"
#include "tandem/kernels/cpu/onednn/support.h"
#include "tandem/kernels/cpu/support/kernel_tuner.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

// Fewer images, if all would take long to measure.
ConvCase part_to_measure(ConvCase p) {
  while (p.multiplications() > tuning::kMaxMeasured && p.batch > 1) p.batch /= 2;
  return p;
}

ProblemClass class_of(Problem problem, const ConvCase& p, int threads) {
  const std::int64_t positions = p.batch * p.y.output * p.x.output;
  ProblemClass of{
      problem, p.dtype, 0, threads, {positions, p.in_depth, p.out_depth, p.y.filter * p.x.filter}};
  const bool strided = p.y.stride != 1 || p.x.stride != 1;
  const bool padded =
      p.y.pad_before != 0 || p.x.pad_before != 0 || p.y.pad_after != 0 || p.x.pad_after != 0;
  of.layout = static_cast<std::uint8_t>((p.nchw ? 1 : 0) | (strided ? 2 : 0) | (padded ? 4 : 0) |
                                        (p.groups != 1 ? 8 : 0));
  return of;
}

// ---- What `explain` shows. ----

struct NodeCase {
  Problem problem;
  ConvCase p;
};

std::optional<NodeCase> case_of(const Node& node) {
  const std::string_view op = node.op().name;
  const bool depthwise = op.starts_with("Depthwise");
  const Problem problem = op.ends_with("BackpropInput")    ? Problem::kConvBackpropInput
                          : op.ends_with("BackpropFilter") ? Problem::kConvBackpropFilter
                                                           : Problem::kConvForward;
  const auto shape_of = [&](std::size_t i) -> const PartialShape& {
    const Output& in = node.inputs()[i];
    return in.node->output_shape(in.index);
  };
  const PartialShape& image =
      problem == Problem::kConvBackpropInput ? node.output_shape(0) : shape_of(0);
  const PartialShape& filter =
      problem == Problem::kConvBackpropFilter ? node.output_shape(0) : shape_of(1);
  if (!image.is_fully_known() || !filter.is_fully_known()) return std::nullopt;
  try {
    const ConvCase p = conv_case(read_conv_attrs(node), node.output_dtype(0), image.to_shape(),
                                 filter.to_shape(), depthwise);
    if (p.no_work()) return std::nullopt;
    return NodeCase{problem, p};
  } catch (const Error&) {  // refused when it runs
    return std::nullopt;
  }
}

bool assumed_as_product(Problem problem, const ConvCase& p) {
  switch (problem) {
    case Problem::kConvBackpropInput: return backprop_input_runs_as_product(p);
    case Problem::kConvBackpropFilter: return backprop_filter_runs_as_product(p);
    default: return forward_runs_as_product(p);
  }
}

std::optional<KernelChoice> describe(const Node& node) {
  const auto found = case_of(node);
  if (!found) return std::nullopt;
  ConvCase p = found->p;
  const auto show = [&](std::span<const char* const> names, int assumed) {
    const ProblemClass of =
        class_of(found->problem, part_to_measure(p), machine_limits().processors);
    return KernelTuner::process().describe(of, names, assumed);
  };
  if (p.dtype == DType::kBFloat16 && onednn::has_native_bfloat16())
    return show(kBFloat16ConvWays, 0);
  p.nchw = false;  // the image is put into the other order first
  if (!can_run_as_product(p)) return std::nullopt;
  return show(kConvWays, assumed_as_product(found->problem, p) ? 1 : 0);
}

const KernelChoiceRegistration kChoices[] = {
    KernelChoiceRegistration("Conv2D", "cpu", describe),
    KernelChoiceRegistration("Conv2DBackpropInput", "cpu", describe),
    KernelChoiceRegistration("Conv2DBackpropFilter", "cpu", describe),
    KernelChoiceRegistration("DepthwiseConv2dNative", "cpu", describe),
    KernelChoiceRegistration("DepthwiseConv2dNativeBackpropInput", "cpu", describe),
    KernelChoiceRegistration("DepthwiseConv2dNativeBackpropFilter", "cpu", describe),
};

}  // namespace

int conv_way(KernelContext& c, Problem problem, const ConvCase& p,
             std::span<const char* const> names, int assumed,
             const std::function<bool(const ConvCase& part, int way)>& run) {
  KernelTuner* const tuner = p.multiplications() < tuning::kMinMeasured ? nullptr : tuner_for(c);
  if (!tuner) return assumed;
  const ConvCase part = part_to_measure(p);
  const ProblemClass of = class_of(problem, part, c.intra_op().threads());
  if (const int known = tuner->known(of); known >= 0) return known;
  return tuner->choose(of, names, assumed, [&](int way) { return run(part, way); });
}

}  // namespace tandem::cpu
