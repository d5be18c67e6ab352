#include "tandem/kernels/cuda/cublaslt/product.h"

#include <limits>

#include "tandem/device/cuda/internal/per_gpu.h"
#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/cublaslt/product_planner.h"

namespace tandem::cuda {
namespace {

// Addresses of tensors are multiples of it, but for those of slices.
constexpr std::uint32_t kMaxAlignment = 256;

std::uint32_t alignment_of(const Product& p) {
  std::uintptr_t bits = kMaxAlignment;
  for (const void* address : {p.a, p.b, static_cast<const void*>(p.y), p.bias, p.addend})
    bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

ProductProblem problem_of(const KernelCall& call, const Product& p) {
  return {.type = p.type,
          .result_type = p.result_type,
          .transpose_a = p.transpose_a,
          .transpose_b = p.transpose_b,
          .has_bias = p.bias != nullptr,
          .has_addend = p.addend != nullptr,
          .activation = p.activation,
          .tensor_float_32 = p.type == Type::kFloat && call.tensor_float_32(),
          .deterministic = call.deterministic(),
          .rows = p.rows,
          .columns = p.columns,
          .depth = p.depth,
          .batch = p.batch,
          .a_step = p.batch == 1 ? 0 : p.a_step,
          .b_step = p.batch == 1 ? 0 : p.b_step,
          .alignment = alignment_of(p)};
}

}  // namespace

bool is_epilogue_of_cublaslt(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu ||
         activation == Activation::kGeluTanh;
}

bool multiply_by_cublaslt(const KernelCall& call, const Product& p,
                          const std::function<void()>& prepare) {
  if (!cublaslt().usable() || p.rows == 0 || p.columns == 0 || p.depth == 0 || p.batch == 0 ||
      p.batch > std::numeric_limits<std::int32_t>::max())
    return false;
  StreamState& stream = StreamState::current();
  ProductAddresses at{.a = p.a, .b = p.b, .c = p.addend ? p.addend : p.y, .d = p.y, .bias = p.bias};
  const std::shared_ptr<const ProductPlan> plan =
      of_gpu<ProductPlanner>(stream.gpu()).plan(call, problem_of(call, p), at);
  if (!plan) return false;
  if (prepare) prepare();
  if (plan->workspace_bytes() != 0) at.workspace = call.scratch(plan->workspace_bytes());
  Command command;
  command.kind = Command::Kind::kLibrary;
  command.name = "cublasLtMatmul";
  command.library = plan;
  const void* const parameters[] = {&at};
  const std::size_t sizes[] = {sizeof(at)};
  stream.commands().add_kernel(command, parameters, sizes, 1);
  stream.added();
  return true;
}

}  // namespace tandem::cuda
