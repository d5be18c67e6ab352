// The ops of hash tables.

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/state/lookup_table.h"
#include "tandem/kernels/cpu/state/resource_op.h"

namespace tandem::cpu {
namespace {

LookupTable::Kind kind_of(const KernelContext& c, bool fixed) {
  LookupTable::Kind kind;
  kind.key = c.attr<DType>("key_dtype");
  kind.value = c.attr<DType>("value_dtype");
  kind.fixed = fixed;
  if (const AttrValue* shape = c.find_attr("value_shape")) {
    const PartialShape& given = *shape->get_if<PartialShape>();
    if (!given.is_fully_known()) {
      throw InvalidArgumentError(cat("value_shape must be fully known, but is ", given, "."));
    }
    kind.value_shape = given.to_shape();
    if (kind.value_shape.rank() > 1) {
      throw InvalidArgumentError(
          cat("Default value must be a vector or scalar, got shape ", kind.value_shape));
    }
  }
  return kind;
}

void set_table(KernelContext& c, const LookupTable::Kind& kind, LookupTable::Marks marks = {},
               std::optional<DenseBuckets> buckets = std::nullopt) {
  const auto make = [&] { return make_ref<LookupTable>(kind, marks, buckets); };
  if (c.op().find_attr("shared_name") == nullptr) {
    return set_handle(c, make(), "table", kDefaultContainer, std::string(kAnonymousName));
  }
  const LookupTable& table = shared_resource<LookupTable>(c, "table", make);
  if (!(table.kind() == kind)) {
    throw InvalidArgumentError(
        cat("There is a table of this name already, but of another kind: ", table.debug_string()));
  }
}

template <bool kFixed>
void make_table(KernelContext& c) {
  set_table(c, kind_of(c, kFixed));
}

void make_dense_table(KernelContext& c) {
  LookupTable::Kind kind = kind_of(c, false);
  const auto buckets = c.attr<std::int64_t>("initial_num_buckets");
  if (!DenseBuckets::fits(buckets)) {
    throw InvalidArgumentError(
        cat("Number of buckets must be at least 4 and a power of 2, got: ", buckets));
  }
  const float load = c.attr<float>("max_load_factor");
  if (!(load > 0 && load < 1)) {
    throw InvalidArgumentError(cat("max_load_factor must be between 0 and 1, got: ", load));
  }
  const Array &empty = c.input(0), &deleted = c.input(1);
  if (!(empty.shape() == deleted.shape())) {
    throw InvalidArgumentError(cat("Empty and deleted keys must have same shape, got shapes: ",
                                   empty.shape(), " and ", deleted.shape()));
  }
  if (empty.rank() > 1) {
    throw InvalidArgumentError(
        cat("Empty key must be a scalar or a vector, got shape ", empty.shape()));
  }
  kind.key_shape = empty.shape();
  kind.dense = true;
  set_table(c, kind, {empty, deleted}, DenseBuckets(buckets, load));
}

Ref<LookupTable> table(const KernelContext& c) { return resource_of<LookupTable>(c, "table"); }

void find(KernelContext& c) { c.set_output(0, table(c)->find(c.input(1), c.input(2))); }
void insert(KernelContext& c) { table(c)->insert(c.input(1), c.input(2)); }
void remove(KernelContext& c) { table(c)->remove(c.input(1)); }
void import_all(KernelContext& c) { table(c)->replace(c.input(1), c.input(2)); }
void size(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int64_t>() = table(c)->size();
}

void export_all(KernelContext& c) {
  const Ref<LookupTable> from = table(c);
  if (from->kind().key != c.attr<DType>("Tkeys") ||
      from->kind().value != c.attr<DType>("Tvalues")) {
    throw InvalidArgumentError(
        cat("The types asked for are not those of the ", from->debug_string(), "."));
  }
  LookupTable::Contents all = from->exported();
  c.set_output(0, std::move(all.keys));
  c.set_output(1, std::move(all.values));
}

void initialize(KernelContext& c) {
  if (c.input(1).rank() != 1) {
    throw InvalidArgumentError(
        cat("Keys must be a vector, but received shape ", c.input(1).shape()));
  }
  if (c.input(1).num_elements() == 0) {
    throw InvalidArgumentError("keys and values cannot be empty tensors: give one row at least.");
  }
  table(c)->initialize(c.input(1), c.input(2));
}

// ---- From a file ----

// Element i of `to` from a line, split into pieces; index -1 is the line's number, counted from
// `offset`, -2 all of it.
void set_from_line(Array& to, std::int64_t i, std::int64_t index, std::int64_t offset,
                   std::string_view line, const std::vector<std::string_view>& pieces) {
  if (index == -1) {
    if (to.dtype() != DType::kInt64) {
      throw InvalidArgumentError(cat("The line's number is int64, not ", to.dtype(), "."));
    }
    to.data<std::int64_t>()[i] = i + offset;
    return;
  }
  if (index == -2) {
    if (to.dtype() != DType::kString) {
      throw InvalidArgumentError(cat("A whole line is a string, not ", to.dtype(), "."));
    }
    to.data<std::string>()[i] = line;
    return;
  }
  if (static_cast<std::size_t>(index) >= pieces.size()) {
    throw InvalidArgumentError(cat("Invalid number of columns in line ", i, ": ", pieces.size(),
                                   " for column ", index, "."));
  }
  const std::string_view text = pieces[static_cast<std::size_t>(index)];
  bool good = true;
  switch (to.dtype()) {
    case DType::kString: to.data<std::string>()[i] = text; break;
    case DType::kInt32: good = parse_number(text, to.data<std::int32_t>()[i]); break;
    case DType::kInt64: good = parse_number(text, to.data<std::int64_t>()[i]); break;
    case DType::kFloat: good = parse_number(text, to.data<float>()[i]); break;
    case DType::kDouble: good = parse_number(text, to.data<double>()[i]); break;
    default: throw InvalidArgumentError(cat("Type ", to.dtype(), " cannot be read from text."));
  }
  if (!good) {
    throw InvalidArgumentError(
        cat("Field ", text, " in line ", i, " is not a valid ", to.dtype(), "."));
  }
}

void initialize_from_file(KernelContext& c) {
  if (c.input(1).num_elements() != 1) {
    throw InvalidArgumentError("filename should be a single string.");
  }
  const std::string& path = *c.input(1).data<std::string>();
  if (path.empty()) throw InvalidArgumentError("filename cannot be empty.");
  const auto key_index = c.attr<std::int64_t>("key_index");
  const auto value_index = c.attr<std::int64_t>("value_index");
  const auto wanted = c.attr<std::int64_t>("vocab_size");
  const auto offset = c.attr<std::int64_t>("offset");
  const auto& delimiter = c.attr<std::string>("delimiter");
  if (delimiter.size() != 1) {
    throw InvalidArgumentError(cat("delimiter must be one character, not '", delimiter, "'."));
  }
  if (wanted == 0 || wanted < -1) {
    throw InvalidArgumentError(cat("vocab_size must be positive, or -1, got ", wanted, "."));
  }
  const std::string text = fs::read_file(path);
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (wanted >= 0 && static_cast<std::int64_t>(lines.size()) == wanted) break;
    if (line.empty()) {
      throw InvalidArgumentError(
          cat("Invalid content in ", path, ": line ", lines.size(), " is empty."));
    }
    lines.push_back(line);
  }
  if (static_cast<std::int64_t>(lines.size()) < wanted) {
    throw InvalidArgumentError(
        cat("Invalid vocab_size in ", path, ": expected ", wanted, " but got ", lines.size()));
  }
  if (lines.empty()) throw OutOfRangeError(cat("There is no line to read in ", path, "."));
  const Ref<LookupTable> to = table(c);
  const Shape shape{static_cast<std::int64_t>(lines.size())};
  Array keys(to->kind().key, shape), values(to->kind().value, shape);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string_view> pieces;
    for (std::string_view rest = lines[i];;) {
      const std::size_t end = rest.find(delimiter[0]);
      pieces.push_back(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
    const auto row = static_cast<std::int64_t>(i);
    set_from_line(keys, row, key_index, offset, lines[i], pieces);
    set_from_line(values, row, value_index, offset, lines[i], pieces);
  }
  to->initialize(keys, values);
}

const KernelRegistration kHash{{.op = "HashTableV2", .run = make_table<true>}};
const KernelRegistration kHashByName{{.op = "HashTable", .run = make_table<true>}};
const KernelRegistration kAnonymousHash{{.op = "AnonymousHashTable", .run = make_table<true>}};
const KernelRegistration kMutable{{.op = "MutableHashTableV2", .run = make_table<false>}};
const KernelRegistration kMutableByName{{.op = "MutableHashTable", .run = make_table<false>}};
const KernelRegistration kAnonymousMutable{
    {.op = "AnonymousMutableHashTable", .run = make_table<false>}};
const KernelRegistration kTensors{{.op = "MutableHashTableOfTensorsV2", .run = make_table<false>}};
const KernelRegistration kTensorsByName{
    {.op = "MutableHashTableOfTensors", .run = make_table<false>}};
const KernelRegistration kAnonymousTensors{
    {.op = "AnonymousMutableHashTableOfTensors", .run = make_table<false>}};
const KernelRegistration kDense{{.op = "MutableDenseHashTableV2", .run = make_dense_table}};
const KernelRegistration kAnonymousDense{
    {.op = "AnonymousMutableDenseHashTable", .run = make_dense_table}};
const KernelRegistration kFind{{.op = "LookupTableFindV2", .run = find}};
const KernelRegistration kFindByName{{.op = "LookupTableFind", .run = find}};
const KernelRegistration kInsert{{.op = "LookupTableInsertV2", .run = insert}};
const KernelRegistration kInsertByName{{.op = "LookupTableInsert", .run = insert}};
const KernelRegistration kRemove{{.op = "LookupTableRemoveV2", .run = remove}};
const KernelRegistration kSize{{.op = "LookupTableSizeV2", .run = size}};
const KernelRegistration kSizeByName{{.op = "LookupTableSize", .run = size}};
const KernelRegistration kExport{{.op = "LookupTableExportV2", .run = export_all}};
const KernelRegistration kExportByName{{.op = "LookupTableExport", .run = export_all}};
const KernelRegistration kImport{{.op = "LookupTableImportV2", .run = import_all}};
const KernelRegistration kImportByName{{.op = "LookupTableImport", .run = import_all}};
const KernelRegistration kInitialize{{.op = "InitializeTableV2", .run = initialize}};
const KernelRegistration kInitializeByName{{.op = "InitializeTable", .run = initialize}};
const KernelRegistration kFromFile{
    {.op = "InitializeTableFromTextFileV2", .run = initialize_from_file}};
const KernelRegistration kFromFileByName{
    {.op = "InitializeTableFromTextFile", .run = initialize_from_file}};

}  // namespace
}  // namespace tandem::cpu
