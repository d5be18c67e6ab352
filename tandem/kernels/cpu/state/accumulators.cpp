// The ops of gradient accumulators. Taking may have to wait, so it is asynchronous.

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/state/gradient_accumulator.h"
#include "tandem/kernels/cpu/state/resource_op.h"

namespace tandem::cpu {
namespace {

constexpr const char* kType = "gradient accumulator";

void make(KernelContext& c, bool sparse) {
  shared_resource<GradientAccumulator>(c, kType, [&] {
    // Whichever version made it, it is the same accumulator.
    return make_ref<GradientAccumulator>(GradientAccumulator::Kind{
        sparse ? "SparseConditionalAccumulator" : "ConditionalAccumulator", c.attr<DType>("dtype"),
        c.attr<PartialShape>("shape"), c.attr<std::string>("reduction_type") == "MEAN", sparse});
  });
}

void make_dense(KernelContext& c) { make(c, false); }
void make_sparse(KernelContext& c) { make(c, true); }

Ref<GradientAccumulator> accumulator(const KernelContext& c) {
  return resource_of<GradientAccumulator>(c, kType);
}

// TensorFlow's process ends where the dtypes differ, and reads inputs that are not there where a
// sparse accumulator is given a dense gradient.
Ref<GradientAccumulator> accumulator(const KernelContext& c, bool sparse) {
  Ref<GradientAccumulator> found = accumulator(c);
  const GradientAccumulator::Kind& kind = found->kind();
  if (kind.sparse != sparse) {
    throw InvalidArgumentError(
        cat("The accumulator is a ", kind.type,
            sparse ? ", whose gradients are dense." : ", whose gradients are rows with indices."));
  }
  if (kind.dtype != c.type_attr("dtype")) {
    throw InvalidArgumentError(
        cat("The accumulator is of ", kind.dtype, ", but dtype is ", c.type_attr("dtype"), "."));
  }
  return found;
}

template <class T>
T scalar_input(const KernelContext& c, int i, const char* name) {
  const Array& value = c.input(i);
  if (value.rank() != 0) {
    throw InvalidArgumentError(
        cat("Argument ", name, " must be scalar, but had bad shape ", value.shape()));
  }
  return *value.data<T>();
}

void apply(KernelContext& c) {
  const auto to = accumulator(c, false);
  to->apply(scalar_input<std::int64_t>(c, 1, "local_step"), c.input(2));
}

void apply_rows(KernelContext& c) {
  const auto to = accumulator(c, true);
  to->apply_rows(scalar_input<std::int64_t>(c, 1, "local_step"), c.input(2), c.input(3),
                 c.attr<bool>("has_known_shape") ? &c.input(4) : nullptr);
}

std::int64_t num_required(const KernelContext& c) {
  const auto count = scalar_input<std::int32_t>(c, 1, "num_required");
  if (count <= 0) {
    throw InvalidArgumentError(cat("Argument num_required must be positive, but was ", count));
  }
  return count;
}

void take(KernelContext& c, KernelDone done) {
  const auto from = accumulator(c, false);
  from->take(num_required(c), c.cancellation(),
             [&c, done = std::move(done)](const std::exception_ptr& error, GradientRows taken) {
               if (!error) c.set_output(0, std::move(taken.values));
               done(error);
             });
}

// The first size is the accumulator's, for the rows do not have it; -1 if it does not know it.
void set_rows(KernelContext& c, const PartialShape& shape, GradientRows taken) {
  const auto nnz = static_cast<std::int64_t>(taken.indices.size());
  std::copy(taken.indices.begin(), taken.indices.end(),
            c.allocate_output(0, Shape{nnz}).data<std::int64_t>());
  const Shape& rows = taken.values.shape();
  auto* sizes = c.allocate_output(2, Shape{rows.rank()}).data<std::int64_t>();
  std::copy(rows.dims().begin(), rows.dims().end(), sizes);
  sizes[0] = shape.has_rank() && shape.rank() > 0 ? shape.dim(0) : -1;
  c.set_output(1, std::move(taken.values));
}

void take_rows(KernelContext& c, KernelDone done) {
  const auto from = accumulator(c, true);
  from->take(num_required(c), c.cancellation(),
             [&c, from, done = std::move(done)](std::exception_ptr error, GradientRows taken) {
               try {
                 if (!error) set_rows(c, from->kind().shape, std::move(taken));
               } catch (...) {
                 error = std::current_exception();
               }
               done(error);
             });
}

void num_accumulated(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() =
      static_cast<std::int32_t>(accumulator(c)->num_accumulated());
}

void set_global_step(KernelContext& c) {
  const auto to = accumulator(c);
  to->set_global_step(scalar_input<std::int64_t>(c, 1, "new_global_step"));
}

constexpr DTypeSet kGradients{DType::kHalf, DType::kFloat, DType::kDouble};

const KernelRegistration kMake{
    {.op = "ResourceConditionalAccumulator", .types = {{"dtype", kGradients}}, .run = make_dense}};
const KernelRegistration kMakeByName{
    {.op = "ConditionalAccumulator", .types = {{"dtype", kGradients}}, .run = make_dense}};
const KernelRegistration kMakeSparse{
    {.op = "SparseConditionalAccumulator", .types = {{"dtype", kGradients}}, .run = make_sparse}};
const KernelRegistration kApply{
    {.op = "ResourceAccumulatorApplyGradient", .types = {{"dtype", kGradients}}, .run = apply}};
const KernelRegistration kApplyByName{
    {.op = "AccumulatorApplyGradient", .types = {{"dtype", kGradients}}, .run = apply}};
const KernelRegistration kApplyRows{
    {.op = "SparseAccumulatorApplyGradient", .types = {{"dtype", kGradients}}, .run = apply_rows}};
const KernelRegistration kTake{
    {.op = "ResourceAccumulatorTakeGradient", .types = {{"dtype", kGradients}}, .run_async = take}};
const KernelRegistration kTakeByName{
    {.op = "AccumulatorTakeGradient", .types = {{"dtype", kGradients}}, .run_async = take}};
const KernelRegistration kTakeRows{{.op = "SparseAccumulatorTakeGradient",
                                    .types = {{"dtype", kGradients}},
                                    .run_async = take_rows}};
const KernelRegistration kCount{
    {.op = "ResourceAccumulatorNumAccumulated", .run = num_accumulated}};
const KernelRegistration kCountByName{{.op = "AccumulatorNumAccumulated", .run = num_accumulated}};
const KernelRegistration kSetStep{
    {.op = "ResourceAccumulatorSetGlobalStep", .run = set_global_step}};
const KernelRegistration kSetStepByName{{.op = "AccumulatorSetGlobalStep", .run = set_global_step}};

}  // namespace
}  // namespace tandem::cpu
