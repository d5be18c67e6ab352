#include "tandem/kernels/cpu/fused/row_program.h"

#include <algorithm>
#include <string>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;

// What a node keeps: its programs, read once.
struct Programs final : RefCounted {
  Ref<FusedProgram> lines, rows;
};

Ref<FusedProgram> program_of(KernelContext& c, bool lines, int inputs) {
  const auto& ops = c.attr<std::vector<std::string>>(lines ? "line_ops" : "ops");
  if (ops.empty()) return {};
  NodeState& state = c.state();
  std::lock_guard lock(state.mutex);
  if (!state.object) state.object = Ref<RefCounted>(make_ref<Programs>());
  auto& all = static_cast<Programs&>(*state.object);
  Ref<FusedProgram>& program = lines ? all.lines : all.rows;
  if (!program) {
    const char* const operands = lines ? "line_operands" : "operands";
    program = make_ref<FusedProgram>(ops, c.attr<std::vector<std::int64_t>>(operands), inputs);
  }
  return program;
}

}  // namespace

RowProgram::RowProgram(KernelContext& c, Which which, int args, const Shape& shape)
    : row_size_(shape.product(shape.rank() - 2, shape.rank())) {
  const AttrValue* counted = c.find_attr("num_line_args");
  const int rows = args + static_cast<int>(counted ? *counted->get_if<std::int64_t>() : 0);
  const bool lines = which == Which::kLines;
  const int begin = lines ? args : rows, end = lines ? rows : c.num_inputs();
  if (end > c.num_inputs()) throw InvalidArgumentError("`num_line_args` exceeds the inputs.");
  program_ = program_of(c, lines, 1 + end - begin);
  if (!program_) return;
  sources_.push_back(BlockSource::given());
  for (int i = begin; i < end; ++i) {
    const Array& arg = c.input(i);
    if (arg.dtype() != DType::kFloat && arg.dtype() != DType::kBFloat16) {
      throw InvalidArgumentError(
          cat("Input ", i, " must be float or bfloat16, not ", arg.dtype(), "."));
    }
    if (!(broadcast(shape, arg.shape()) == shape)) {
      throw InvalidArgumentError(cat("Input ", i, " of shape ", arg.shape(),
                                     " does not broadcast to images of shape ", shape, "."));
    }
    sources_.emplace_back(arg, shape);
  }
}

RowProgram::Run::Run(const RowProgram& program)
    : size_(program.row_size_), block_(std::min(kBlock, program.row_size_)) {
  if (program.program_) run_.emplace(*program.program_, program.sources_, block_);
}

void RowProgram::Run::operator()(std::int64_t i, float* row) {
  if (!run_) return;
  for (std::int64_t k = 0; k < size_; k += block_)
    run_->block(i * size_ + k, std::min(block_, size_ - k), row + k, row + k);
}

}  // namespace tandem::cpu
