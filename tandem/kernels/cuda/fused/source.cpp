#include "tandem/kernels/cuda/fused/source.h"

#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// Where the numbers of the accesses begin: behind elements and, for sums, columns, rows and rows of
// a piece.
constexpr std::size_t kFirstNumber = 1, kFirstNumberOfSums = 4;

const char* type_name(Type type) {
  switch (type) {
    case Type::kFloat: return "float";
    case Type::kDouble: return "double";
    case Type::kHalf: return "Half";
    case Type::kBFloat16: return "BFloat16";
    default: no_kernel_for(type);
  }
}

std::string n(std::size_t number) { return std::to_string(number); }

class Writer {
 public:
  explicit Writer(const GeneratedKernel& kernel) : k_(kernel) {}

  std::string text() {
    line("#include \"tandem/kernels/cuda/fused/generated.h\"");
    line("namespace tandem::cuda {");
    line(std::string("using Index = ") + (k_.wide ? "std::uint64_t;" : "std::uint32_t;"));
    line(std::string("using Value = ") + (k_.in_double ? "double;" : "float;"));
    line("struct Numbers { Index at[" + n(count_numbers()) + "]; };");
    if (k_.num_sums() == 0) return parts();
    line("TANDEM_GENERATED_KERNEL " + std::string(kGeneratedName) + "(" + parameters() + ") {");
    write_sums();
    line("}");
    line("}");
    offer(kGeneratedName);
    return text_;
  }

 private:
  void line(const std::string& text) { text_ += text + '\n'; }
  void offer(const char* kernel) { line(std::string("TANDEM_GENERATED(") + kernel + ")"); }

  // A kernel on a part, and one on many.
  std::string parts() {
    line("struct Part {");
    for (std::size_t i = 0; i < k_.types.size(); ++i) line(pointer(i) + ";");
    line(std::string(type_name(k_.stored)) + "* y;");
    line("alignas(8) Numbers p;");
    line("};");
    line("TANDEM_DEVICE void compute(const Part& part, PartBlocks blocks) {");
    for (std::size_t i = 0; i < k_.types.size(); ++i) {
      line(pointer(i) + " = part.x" + n(i) + ";");
    }
    line(std::string(type_name(k_.stored)) + "* y = part.y;");
    line("const Numbers p = part.p;");
    line("for (Index i = blocks.first<Index>(); i < p.at[0]; i += blocks.step<Index>()) {");
    write_element();
    line("}");
    line("}");
    const std::string kernel = "TANDEM_GENERATED_KERNEL ";
    line(kernel + kGeneratedName + "(Part part) {");
    line("compute(part, PartBlocks::whole_grid());");
    line("}");
    line(kernel + kGeneratedPartsName + "(Parts<Part> parts) {");
    line("const int one = part_of_block(parts);");
    line("compute(parts.at[one], blocks_of_part(parts, one));");
    line("}");
    line("}");
    offer(kGeneratedName);
    offer(kGeneratedPartsName);
    return text_;
  }

  std::string pointer(std::size_t input) const {
    return std::string("const ") + type_name(k_.types[input]) + "* x" + n(input);
  }

  std::size_t first_number() const { return k_.num_sums() > 0 ? kFirstNumberOfSums : kFirstNumber; }
  std::size_t count_numbers() const {
    std::vector<std::int64_t> numbers(first_number());
    for (const Access& access : k_.accesses) access.append_numbers(numbers);
    return numbers.size();
  }

  std::string parameters() const {
    std::string text;
    for (std::size_t i = 0; i < k_.types.size(); ++i) {
      text += pointer(i) + ", ";
    }
    if (k_.stores) text += std::string(type_name(k_.stored)) + "* y, ";
    if (k_.in_pieces) {
      text += "Value* partial, ";
    } else {
      for (std::size_t s = 0; s < k_.num_sums(); ++s) {
        text += std::string(type_name(k_.summed)) + "* z" + n(s) + ", ";
      }
    }
    text += "Numbers p";
    if (k_.num_sums() > 0 && !k_.in_pieces) text += ", Value divisor";
    return text;
  }

  std::string value(int number) const { return "v" + std::to_string(number); }

  // The values for element i; the result is stored last, since an input may lie there.
  void write_element() {
    std::size_t number = first_number();
    for (std::size_t i = 0; i < k_.types.size(); ++i) {
      const Access& access = k_.accesses[i];
      line("const Value v" + n(i) + " = load(x" + n(i) + "[" + access.expression(number) + "]);");
      std::vector<std::int64_t> numbers;
      access.append_numbers(numbers);
      number += numbers.size();
    }
    int next = k_.program.num_inputs;
    for (const FusedProgram::Step& step : k_.program.steps) {
      std::string text = value(step.operands[0]);
      const std::string call = std::string(step.function) + "::apply(";
      if (step.elements == 1) text = call + text + ")";
      for (std::size_t i = 1; i < step.operands.size(); ++i) {
        text = call + text + ", " + value(step.operands[i]) + ")";
      }
      line("const Value " + value(next++) + " = " + text + ";");
    }
    for (std::size_t s = 0; s < k_.num_sums(); ++s) {
      line("s" + n(s) + " += " + value(k_.program.results[s + (k_.stores ? 1 : 0)]) + ";");
    }
    if (k_.stores) {
      line(std::string("y[i] = store<") + type_name(k_.stored) + ">(" +
           value(k_.program.results[0]) + ");");
    }
  }

  // A block has `lanes` columns side by side, and goes through the rows of a piece.
  void write_sums() {
    const std::string lanes = n(k_.lanes), rows = n(GeneratedKernel::kThreads / k_.lanes);
    line("TANDEM_SHARED(Value, sums, " + n(GeneratedKernel::kThreads) + ");");
    for (std::size_t s = 0; s < k_.num_sums(); ++s) line("Value s" + n(s) + " = 0;");
    line("const Index columns = p.at[1], piece = blockIdx.y, first = piece * p.at[3];");
    line("const Index column = static_cast<Index>(blockIdx.x) * " + lanes + " + threadIdx.x;");
    line("const Index end = p.at[2] - first < p.at[3] ? p.at[2] : first + p.at[3];");
    line("if (column < columns) {");
    line("for (Index row = first + threadIdx.y; row < end; row += " + rows + ") {");
    line("const Index i = row * columns + column;");
    write_element();
    line("}");
    line("}");
    line("const unsigned at = threadIdx.y * " + lanes + " + threadIdx.x;");
    // One sum after the other: they share the memory, of which many in double would need too much.
    for (std::size_t s = 0; s < k_.num_sums(); ++s) {
      if (s > 0) line("__syncthreads();");
      line("sums[at] = s" + n(s) + ";");
      line("__syncthreads();");
      line("if (threadIdx.y == 0 && column < columns) {");
      line("for (unsigned row = 1; row < " + rows + "; ++row) {");
      line("s" + n(s) + " += sums[row * " + lanes + " + threadIdx.x];");
      line("}");
      write_sum(s);
      line("}");
    }
  }

  void write_sum(std::size_t s) {
    if (k_.in_pieces) {
      line("partial[(piece * " + n(k_.num_sums()) + " + " + n(s) + ") * columns + column] = s" +
           n(s) + ";");
    } else {
      line("z" + n(s) + "[column] = store<" + type_name(k_.summed) + ">(s" + n(s) + " / divisor);");
    }
  }

  const GeneratedKernel& k_;
  std::string text_;
};

}  // namespace

std::string GeneratedKernel::key() const {
  std::string text;
  const auto add = [&](std::int64_t number) {
    text += std::to_string(number);
    text += ',';
  };
  for (std::size_t i = 0; i < types.size(); ++i) {
    add(static_cast<std::int64_t>(types[i]));
    text += accesses[i].form();
  }
  for (const FusedProgram::Step& step : program.steps) {
    text += step.function;
    for (const int operand : step.operands) add(operand);
  }
  text += ':';
  for (const int result : program.results) add(result);
  add((stores ? 1 : 0) + (in_pieces ? 2 : 0) + (wide ? 4 : 0) + (in_double ? 8 : 0));
  if (stores) add(static_cast<std::int64_t>(stored));
  if (num_sums() > 0) {
    add(static_cast<std::int64_t>(summed));
    add(lanes);
  }
  return text;
}

std::string GeneratedKernel::source() const { return Writer(*this).text(); }

}  // namespace tandem::cuda
