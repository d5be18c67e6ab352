// The files of a SavedModel.

#include <farmhash.h>

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/wire.h"
#include "tandem/saved_model/internal/model_writer.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;

constexpr const char* kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";
constexpr int kFingerprintVersion = 4;  // whose fields these are

std::uint64_t hash(const std::string& bytes) { return util::Fingerprint64(bytes); }

}  // namespace

void ModelWriter::write_variables(const std::string& folder) {
  ObjectGraph graph;
  std::vector<Tensor> values;
  for (const Entry& entry : entries_) {
    ObjectGraph::Object& object = graph.objects.emplace_back();
    object.children = entry.children;
    Tensor& value = values.emplace_back();
    if (!entry.object || entry.object->kind != Object::Kind::kVariable) continue;
    object.key = entry.path + kValueSuffix;
    object.name = entry.object->variable.name();
    value = entry.object->variable.read_value();
  }
  fs::file_system_of(folder).make_directories(folder);
  saving_for("saved_model::save").write_checkpoint(folder + "/variables", graph, values);
}

void ModelWriter::write_assets(const std::string& folder) const {
  if (assets_.empty()) return;
  fs::file_system_of(folder).make_directories(folder);
  for (const auto& [path, name] : assets_) fs::write_file(folder + "/" + name, fs::read_file(path));
}

void ModelWriter::write(const std::string& folder) {
  write_variables(folder + "/variables");
  write_assets(folder + "/assets");
  const std::string bytes = proto::WireWriter::write(model_);
  std::string signatures;
  for (const auto& [name, def] : meta_.signature_def)
    signatures.append(name).append(proto::WireWriter::write(def));
  proto::FingerprintDef fingerprint;
  fingerprint.saved_model_checksum = hash(bytes);
  fingerprint.graph_def_program_hash = hash(proto::WireWriter::write(graph_));
  fingerprint.signature_def_hash = hash(signatures);
  fingerprint.saved_object_graph_hash = hash(proto::WireWriter::write(objects_));
  fingerprint.checkpoint_hash = hash(fs::read_file(folder + "/variables/variables.index"));
  fingerprint.version.make().producer = kFingerprintVersion;
  fingerprint.uuid = uuid_;
  fs::write_file(folder + "/fingerprint.pb", proto::WireWriter::write(fingerprint));
  fs::write_file(folder + "/saved_model.pb", bytes);
}

}  // namespace tandem::saved_model::internal
