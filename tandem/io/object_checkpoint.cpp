// Checkpoints of objects, as tf.train.Checkpoint writes them, and what keras asks of io.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/internal/on_threads.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"
#include "tandem/io/tensor_bundle.h"
#include "tandem/runtime/saving.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem::io {
namespace {

constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr const char* kValue = "VARIABLE_VALUE";
constexpr const char* kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";
constexpr const char* kCounter = "save_counter";

using proto::TrackableObjectGraph;

// Objects from which a value can be reached; a graph may have cycles.
std::vector<bool> leading_to_values(const ObjectGraph& graph) {
  const std::size_t count = graph.objects.size();
  std::vector<std::vector<std::size_t>> parents(count);
  std::vector<bool> leads(count);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& [name, child] : graph.objects[i].children)
      parents[static_cast<std::size_t>(child)].push_back(i);
    if (!graph.objects[i].key.empty() || !graph.objects[i].values.empty()) open.push_back(i);
  }
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    if (leads[at]) continue;
    leads[at] = true;
    open.insert(open.end(), parents[at].begin(), parents[at].end());
  }
  return leads;
}

std::string encode(const ObjectGraph& graph) {
  const std::vector<bool> leads = leading_to_values(graph);
  TrackableObjectGraph message;
  for (const ObjectGraph::Object& object : graph.objects) {
    auto& node = message.nodes.emplace_back();
    for (const auto& [name, child] : object.children) {
      auto& reference = node.children.emplace_back();
      reference.node_id = child;
      reference.local_name = name;
    }
    if (!object.key.empty()) {
      auto& attribute = node.attributes.emplace_back();
      attribute.name = kValue;
      attribute.full_name = object.name;
      attribute.checkpoint_key = object.key;
    }
    for (const ObjectGraph::Value& value : object.values) {
      auto& attribute = node.attributes.emplace_back();
      attribute.name = value.attribute;
      attribute.checkpoint_key = value.key;
    }
    for (const ObjectGraph::Slot& slot : object.slots) {
      auto& reference = node.slot_variables.emplace_back();
      reference.original_variable_node_id = slot.variable;
      reference.slot_name = slot.name;
      reference.slot_variable_node_id = slot.object;
    }
    node.has_checkpoint_values.make().value = leads[message.nodes.size() - 1];
  }
  return proto::WireWriter::write(message);
}

ObjectGraph decode(const std::string& bytes, const std::string& prefix) {
  const auto damaged = [&](const auto& why) -> DataLossError {
    return DataLossError(cat("The object graph of checkpoint ", prefix, " is damaged: ", why, "."));
  };
  TrackableObjectGraph message;
  try {
    proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw damaged(error.what());
  }
  if (message.nodes.empty()) throw damaged("it has no objects");
  ObjectGraph graph;
  const auto count = static_cast<std::int64_t>(message.nodes.size());
  for (const auto& node : message.nodes) {
    ObjectGraph::Object& object = graph.objects.emplace_back();
    for (const auto& reference : node.children) {
      if (reference.node_id < 0 || reference.node_id >= count)
        throw damaged(cat("there is no object ", reference.node_id));
      object.children.emplace_back(reference.local_name, reference.node_id);
    }
    for (const auto& attribute : node.attributes) {
      if (attribute.name == kValue) {
        object.key = attribute.checkpoint_key;
        object.name = attribute.full_name;
      } else {
        object.values.push_back({attribute.name, attribute.checkpoint_key});
      }
    }
    for (const auto& slot : node.slot_variables) {
      for (const std::int64_t id : {slot.original_variable_node_id, slot.slot_variable_node_id})
        if (id < 0 || id >= count) throw damaged(cat("there is no object ", id));
      object.slots.push_back(
          {slot.original_variable_node_id, slot.slot_name, slot.slot_variable_node_id});
    }
  }
  return graph;
}

class BundleCheckpoint final : public ObjectCheckpoint {
 public:
  explicit BundleCheckpoint(const std::string& prefix) : prefix_(prefix), reader_(prefix) {
    if (!reader_.contains(kGraphKey)) return;
    const Array bytes = reader_.read(kGraphKey);
    if (bytes.dtype() != DType::kString || bytes.num_elements() != 1)
      throw DataLossError(cat("The object graph of checkpoint ", prefix, " is no string."));
    graph_ = decode(*bytes.data<std::string>(), prefix);
  }
  bool has_graph() const override { return graph_.has_value(); }
  const ObjectGraph& graph() const override {
    if (!graph_) {
      throw InvalidArgumentError(
          cat("Checkpoint ", prefix_,
              " holds no objects: a Saver of TensorFlow 1 wrote it, or SaveV2 itself. Read its "
              "tensors by name with td::train::load_checkpoint."));
    }
    return *graph_;
  }
  std::vector<std::string> keys() const override { return reader_.names(); }
  bool contains(const std::string& key) const override { return reader_.contains(key); }
  DType dtype(const std::string& key) const override { return reader_.dtype(key); }
  Shape shape(const std::string& key) const override { return reader_.shape(key); }
  Tensor read(const std::string& key) const override { return Tensor(reader_.read(key)); }
  void verify(const std::vector<std::string>& keys) const override { reader_.verify(keys); }
  std::vector<Tensor> read(const std::vector<std::string>& keys) const override {
    std::vector<Tensor> values;
    for (Array& value : reader_.read(keys)) values.emplace_back(std::move(value));
    return values;
  }

 private:
  std::string prefix_;
  TensorBundleReader reader_;
  std::optional<ObjectGraph> graph_;
};

// A value that a variable still has: a step that changes the variable must copy it.
bool is_shared(const Tensor& value) {
  value.synchronize();
  return !value.impl()->array.writable_in_place();
}

// Values that variables still have come first, so that steps meanwhile copy less. Gradients reach
// the last of a model's variables first: writing and steps meet in the middle.
void write_items(TensorBundleWriter& writer, CheckpointContents& contents) {
  const auto write_shard = [&](std::size_t shard) {
    const auto write = [&](CheckpointContents::Item& item) {
      writer.add(item.key, item.value.array(), item.shard);
      item.value = Tensor();
    };
    std::vector<CheckpointContents::Item*> unshared;
    for (CheckpointContents::Item& item : contents.items) {
      if (item.shard != static_cast<int>(shard)) continue;
      if (is_shared(item.value)) {
        write(item);
      } else {
        unshared.push_back(&item);
      }
    }
    if (contents.when_unshared) contents.when_unshared();
    for (CheckpointContents::Item* item : unshared) write(*item);
  };
  on_threads(static_cast<std::size_t>(contents.num_shards), contents.num_shards, write_shard);
}

class IoSaving final : public Saving {
 public:
  IoSaving() { register_saving(*this); }

  void write_checkpoint(const std::string& prefix, const ObjectGraph& graph,
                        const std::vector<Tensor>& values) const override {
    TensorBundleWriter writer(prefix);
    for (std::size_t i = 0; i < graph.objects.size(); ++i) {
      if (!graph.objects[i].key.empty()) writer.add(graph.objects[i].key, values.at(i).array());
    }
    // tf.train.Checkpoint counts how often it was saved, and misses the number where there is none.
    ObjectGraph counted = graph;
    const auto counter = static_cast<int>(counted.objects.size());
    counted.objects.front().children.emplace_back(kCounter, counter);
    counted.objects.push_back({{}, cat(kCounter, kValueSuffix), kCounter});
    writer.add(counted.objects.back().key, Array::scalar<std::int64_t>(1));
    writer.add(kGraphKey, Array::scalar<std::string>(encode(counted)));
    writer.finish();
  }
  void write_checkpoint(const std::string& prefix, CheckpointContents contents) const override {
    TensorBundleWriter writer(prefix, {.num_shards = contents.num_shards});
    write_items(writer, contents);
    if (contents.graph) writer.add(kGraphKey, Array::scalar<std::string>(encode(*contents.graph)));
    writer.finish();
  }
  void merge_checkpoints(const std::vector<std::string>& prefixes,
                         const std::string& destination) const override {
    merge_tensor_bundles(prefixes, destination);
  }
  std::unique_ptr<ObjectCheckpoint> open_checkpoint(const std::string& prefix) const override {
    return std::make_unique<BundleCheckpoint>(prefix);
  }
  WrittenGraph write_graph(const std::string& path, const ConcreteFunction& function,
                           std::vector<std::string> inputs,
                           std::vector<std::string> outputs) const override {
    ExportedGraph graph = write_graph_def(
        path, function, {.inputs = std::move(inputs), .outputs = std::move(outputs)});
    return {std::move(graph.inputs), std::move(graph.outputs)};
  }
};

const IoSaving kSaving;

}  // namespace
}  // namespace tandem::io
