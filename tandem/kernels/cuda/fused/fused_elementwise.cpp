// _FusedElementwise, _FusedSum and _FusedElementwiseSums: a generated kernel for each node.

#include <algorithm>
#include <cstring>

#include "tandem/kernels/cuda/fused/generated_function.h"
#include "tandem/kernels/cuda/fused/sums.h"
#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = GeneratedKernel::kThreads;
// Rows that a thread adds up; a float keeps its digits over so many.
constexpr std::int64_t kRowsOfThread = 32;
constexpr std::int64_t kMaxPieces = 128;
constexpr std::int64_t kMaxNarrow = std::int64_t{1} << 31;

// Arguments of a launch, copied: their values, one after the other, and where each lies.
class Arguments {
 public:
  template <class T>
  void add(const T& value) {
    add(&value, sizeof(T));
  }
  void add(const void* value, std::size_t bytes) {
    offsets_.push_back(bytes_.size());
    sizes_.push_back(bytes);
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + (bytes + 7) / 8 * 8);
    std::memcpy(bytes_.data() + begin, value, bytes);
  }
  void launch(Function function, const Shape& shape) const {
    std::vector<const void*> pointers;
    for (const std::size_t offset : offsets_) pointers.push_back(bytes_.data() + offset);
    add_launch(kGeneratedName, function, shape, 0, pointers.data(), sizes_.data(), sizes_.size());
  }
  // All of them together as one.
  void launch_part(const GeneratedFunctions& functions, const Shape& shape,
                   std::span<const MemoryUse> uses) const {
    cuda::launch_part({.name = kGeneratedName,
                       .alone = functions.kernel,
                       .together = [](const PartLaunch& launch) { return launch.of_parts; },
                       .of_parts = functions.of_parts,
                       .shape = shape,
                       .part = bytes_.data(),
                       .part_bytes = bytes_.size(),
                       .uses = uses});
  }

 private:
  std::vector<std::size_t> offsets_, sizes_;
  std::vector<std::byte> bytes_;
};

// The node's inputs, and the kernel to generate as far as they determine it.
struct Work {
  GeneratedKernel kernel;
  std::vector<TensorView> inputs;
  Sizes sizes;  // of the value that the program computes
  std::int64_t count = 0;

  void add_inputs(Arguments& arguments) const {
    for (const TensorView& input : inputs) arguments.add(input.data);
  }
  // The numbers of the kernel's last parameter but the divisor.
  void add_numbers(Arguments& arguments, std::vector<std::int64_t> numbers) const {
    for (const Access& access : kernel.accesses) access.append_numbers(numbers);
    if (kernel.wide) {
      arguments.add(numbers.data(), numbers.size() * sizeof(std::int64_t));
    } else {
      const std::vector<std::uint32_t> narrow(numbers.begin(), numbers.end());
      arguments.add(narrow.data(), narrow.size() * sizeof(std::uint32_t));
    }
  }
};

// Rounding in between would be lost where types are mixed.
void check_type(const TensorView& input, int i, bool in_double) {
  const bool suits = in_double ? input.type == Type::kDouble
                               : input.type == Type::kFloat || input.type == Type::kHalf ||
                                     input.type == Type::kBFloat16;
  if (suits) return;
  refuse("input " + std::to_string(i) + " must be " +
         (in_double ? "double, as the output is" : "float, half or bfloat16"));
}

Work read(KernelCall& call, const Sizes& results, bool in_double) {
  Work work;
  const int count = call.num_inputs();
  work.kernel.program =
      FusedProgram::read(call.attr_strings("ops"), call.attr_ints("operands"), count, results);
  for (int i = 0; i < count; ++i) {
    work.inputs.push_back(call.input(i));
    const TensorView& input = work.inputs.back();
    check_type(input, i, in_double);
    work.sizes = i == 0 ? input.sizes : broadcast_sizes(work.sizes, input.sizes);
    work.kernel.types.push_back(input.type);
  }
  for (const TensorView& input : work.inputs) {
    work.kernel.accesses.push_back(Access::of(input.sizes, work.sizes));
  }
  work.count = product(work.sizes);
  work.kernel.in_double = in_double;
  work.kernel.wide = work.count >= kMaxNarrow;
  return work;
}

// The output may lie where an input does. If that has not the same elements, it is copied out of
// the way.
TensorView allocate_output(KernelCall& call, Work& work) {
  const TensorView out = call.allocate_output(0, work.sizes);
  for (TensorView& input : work.inputs) {
    if (input.count == 0 || input.data != out.data ||
        (input.type == out.type && input.count == out.count)) {
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(input.count) * size_of(input.type);
    void* const copy = call.scratch(bytes);
    call.copy(copy, input.data, bytes);
    input.data = copy;
  }
  return out;
}

// Rows and columns of what is summed up over all axes but the last.
struct Rows {
  std::int64_t rows = 0, columns = 0;
  unsigned lanes = 1;
  std::int64_t of_piece = 1;
  std::int64_t pieces = 1;

  explicit Rows(const Sizes& sizes) {
    if (sizes.empty()) refuse("the value must have an axis that stays");
    columns = sizes.back();
    rows = product(std::span(sizes).first(sizes.size() - 1));
    while (lanes < 32 && static_cast<std::int64_t>(lanes) < columns) lanes *= 2;
    const std::int64_t of_block = kRowsOfThread * static_cast<std::int64_t>(kThreads / lanes);
    of_piece = std::max(of_block, (rows + kMaxPieces - 1) / kMaxPieces);
    pieces = std::max<std::int64_t>(1, (rows + of_piece - 1) / of_piece);
  }
};

// Runs a kernel that sums up, and what follows for each sum.
void run_sums(KernelCall& call, Work& work, const Rows& rows, const TensorView* stored,
              const std::vector<TensorView>& sums, double divisor) {
  GeneratedKernel& kernel = work.kernel;
  kernel.stores = stored != nullptr;
  if (stored) kernel.stored = stored->type;
  kernel.summed = sums[0].type;
  kernel.in_pieces = rows.pieces > 1;
  kernel.lanes = rows.lanes;
  Arguments arguments;
  work.add_inputs(arguments);
  if (stored) arguments.add(stored->data);
  const auto num_sums = static_cast<std::int64_t>(sums.size());
  void* partial = nullptr;
  if (kernel.in_pieces) {
    partial = call.scratch(static_cast<std::size_t>(rows.pieces * num_sums * rows.columns) *
                           (kernel.in_double ? sizeof(double) : sizeof(float)));
    arguments.add(partial);
  } else {
    for (const TensorView& sum : sums) arguments.add(sum.data);
  }
  work.add_numbers(arguments, {work.count, rows.columns, rows.rows, rows.of_piece});
  if (!kernel.in_pieces && kernel.in_double) arguments.add(divisor);
  if (!kernel.in_pieces && !kernel.in_double) arguments.add(static_cast<float>(divisor));
  Shape shape;
  shape.grid.x = static_cast<unsigned>((rows.columns + rows.lanes - 1) / rows.lanes);
  shape.grid.y = static_cast<unsigned>(rows.pieces);
  shape.block.x = rows.lanes;
  shape.block.y = kThreads / rows.lanes;
  arguments.launch(generated_functions(kernel).kernel, shape);
  if (!kernel.in_pieces) return;
  for (std::int64_t s = 0; s < num_sums; ++s) {
    finish_sum(partial, sums[static_cast<std::size_t>(s)], rows.columns, rows.pieces, num_sums, s,
               divisor);
  }
}

Sizes sum_sizes(std::int64_t rank, std::int64_t columns) {
  if (rank < 1) refuse("a sum cannot have rank " + std::to_string(rank));
  Sizes sizes(static_cast<std::size_t>(rank), 1);
  sizes.back() = columns;
  return sizes;
}

}  // namespace

void fused_elementwise(KernelCall& call) {
  Work work = read(call, {}, call.attr_type("T") == Type::kDouble);
  const TensorView out = allocate_output(call, work);
  if (out.count == 0) return;
  work.kernel.stored = out.type;
  Arguments arguments;
  work.add_inputs(arguments);
  arguments.add(out.data);
  work.add_numbers(arguments, {work.count});
  std::vector<MemoryUse> uses{reads(out.data, out.count, size_of(out.type))};
  uses[0].writes = true;
  for (const TensorView& input : work.inputs) {
    uses.push_back(reads(input.data, input.count, size_of(input.type)));
  }
  arguments.launch_part(generated_functions(work.kernel), shape_for(out.count), uses);
}

void fused_sum(KernelCall& call) {
  Work work = read(call, {}, call.attr_type("T") == Type::kDouble);
  const Rows rows(work.sizes);
  const auto rank = static_cast<std::int64_t>(work.sizes.size());
  const TensorView out =
      call.allocate_output(0, sum_sizes(call.attr_bool("keep_dims") ? rank : 1, rows.columns));
  if (rows.columns == 0) return;
  run_sums(call, work, rows, nullptr, {out},
           call.attr_bool("mean") ? static_cast<double>(rows.rows) : 1.0);
}

void fused_elementwise_sums(KernelCall& call) {
  const Sizes ranks = call.attr_ints("sum_ranks"), results = call.attr_ints("results");
  const auto num_sums = static_cast<std::size_t>(call.num_outputs() - 1);
  if (num_sums == 0 || ranks.size() != num_sums || results.size() != num_sums + 1) {
    refuse("there are " + std::to_string(num_sums) + " sums, but " + std::to_string(ranks.size()) +
           " `sum_ranks` and " + std::to_string(results.size()) + " `results`");
  }
  const bool in_double = call.attr_type("T") == Type::kDouble;
  if ((call.attr_type("Tsum") == Type::kDouble) != in_double)
    refuse("sums must be double where the output is, and only there");
  Work work = read(call, results, in_double);
  const Rows rows(work.sizes);
  const TensorView out = allocate_output(call, work);
  std::vector<TensorView> sums;
  for (std::size_t s = 0; s < num_sums; ++s) {
    sums.push_back(
        call.allocate_output(static_cast<int>(s) + 1, sum_sizes(ranks[s], rows.columns)));
  }
  if (rows.columns > 0) run_sums(call, work, rows, &out, sums, 1.0);
}

}  // namespace tandem::cuda
