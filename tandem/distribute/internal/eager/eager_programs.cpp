#include "tandem/distribute/internal/eager/eager_programs.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/graph_message.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {
namespace {

std::string key_of(const proto::EagerOperation& operation, std::span<const DType> inputs) {
  std::string key = operation.name;
  key += '\n';
  key += operation.device;
  key += '\n';
  for (const DType dtype : inputs) key += static_cast<char>(dtype);
  for (const std::string_view attr : operation.attrs) {
    key += '\n';
    key += attr;
  }
  return key;
}

std::string attr_entry(const char* name, const proto::AttrParts& value) {
  proto::AttrEntry entry;
  entry.key = name;
  entry.value.make() = value;
  return io::proto::WireWriter::write(entry);
}

}  // namespace

std::shared_ptr<const EagerProgram> EagerPrograms::get(const proto::EagerOperation& operation,
                                                       std::span<const DType> inputs) {
  const std::string key = key_of(operation, inputs);
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
    number = next_++;
  }
  auto made = std::make_shared<const EagerProgram>(make(operation, inputs, number));
  const MutexLock lock(mutex_);
  if (programs_.size() >= kMaxPrograms) programs_.clear();
  return programs_.emplace(key, std::move(made)).first->second;
}

void EagerPrograms::forget_functions() {
  const MutexLock lock(mutex_);
  std::erase_if(programs_, [](const auto& entry) { return entry.second->calls_functions; });
}

EagerProgram EagerPrograms::make(const proto::EagerOperation& operation,
                                 std::span<const DType> inputs, std::uint64_t number) const {
  std::vector<std::string> kept;  // what the message only refers to
  kept.reserve(inputs.size() * 3);
  proto::GraphParts graph;
  proto::OperationNode node;
  // What a stateful op keeps goes by its node's name.
  node.name = cat("op_", number);
  node.op = operation.name;
  node.device = operation.device;
  node.attr = operation.attrs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    proto::OperationNode arg;
    arg.name = cat("arg_", i);
    arg.op = "_Arg";
    proto::AttrParts type, index;
    type.which_value = proto::AttrParts::Case::kType;
    type.type = static_cast<std::int32_t>(inputs[i]);
    index.which_value = proto::AttrParts::Case::kI;
    index.i = static_cast<std::int64_t>(i);
    arg.attr.push_back(kept.emplace_back(attr_entry("T", type)));
    arg.attr.push_back(kept.emplace_back(attr_entry("index", index)));
    node.input.push_back(arg.name);
    graph.node.push_back(kept.emplace_back(io::proto::WireWriter::write(arg)));
  }
  const std::string node_bytes = io::proto::WireWriter::write(node);
  graph.node.push_back(node_bytes);

  std::set<std::string> called{operation.name};
  for (const std::string_view attr : operation.attrs) add_functions_of_attr(attr, called);
  const std::vector<FunctionTable::Definition> definitions = functions_.closure_of(called);
  proto::FunctionList library;
  for (const auto& definition : definitions) library.function.push_back(*definition);
  const std::string library_bytes = io::proto::WireWriter::write(library);
  if (!definitions.empty()) graph.library = library_bytes;
  proto::VersionNumbers versions;
  versions.producer = io::kGraphDefVersion;
  const std::string version_bytes = io::proto::WireWriter::write(versions);
  graph.versions = version_bytes;

  const io::ImportedGraph imported = import_graph(io::proto::WireWriter::write(graph), runtime_);
  Graph body = imported.graph->clone();
  std::vector<Node*> args;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    args.push_back(body.find(cat("arg_", i)));
    body.set_output_shape(args.back(), 0, PartialShape::unknown());
  }
  Node* const op = body.find(node.name);
  body.infer_shapes_to_run();
  std::vector<Output> results;
  for (int i = 0; i < op->num_outputs(); ++i) results.push_back({op, i});
  std::vector<Node*> effects;
  if (op->op().traits.stateful || results.empty()) effects.push_back(op);
  EagerProgram program;
  program.calls_functions = !definitions.empty();
  program.spans_tasks = program.calls_functions && passes::spans_tasks(*op, op->requested_device());
  program.function = std::make_shared<const Function>(
      operation.name, std::move(body), std::move(args), std::move(results), std::move(effects));
  return program;
}

}  // namespace tandem::distribute
