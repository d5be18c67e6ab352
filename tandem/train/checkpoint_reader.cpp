#include "tandem/train/checkpoint_reader.h"

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/runtime/saving.h"
#include "tandem/train/checkpoint_state.h"
#include "tandem/train/internal/grouped_read.h"

namespace tandem::train {

CheckpointReader::CheckpointReader(const String& path)
    : file_(saving_for("td::train::load_checkpoint").open_checkpoint(path)) {}

std::map<std::string, Shape> CheckpointReader::get_variable_to_shape_map() const {
  std::map<std::string, Shape> shapes;
  for (const std::string& key : file_->keys()) shapes.emplace(key, file_->shape(key));
  return shapes;
}

std::map<std::string, DType> CheckpointReader::get_variable_to_dtype_map() const {
  std::map<std::string, DType> dtypes;
  for (const std::string& key : file_->keys()) dtypes.emplace(key, file_->dtype(key));
  return dtypes;
}

bool CheckpointReader::has_tensor(const String& name) const { return file_->contains(name); }
Tensor CheckpointReader::get_tensor(const String& name) const { return file_->read(name); }

CheckpointReader load_checkpoint(const String& path) {
  if (fs::exists(path + ".index")) return CheckpointReader(path);
  if (fs::exists(path) && fs::file_system_of(path).stat(path).is_directory) {
    const std::optional<std::string> latest = latest_checkpoint(path);
    if (!latest)
      throw NotFoundError(
          cat("Couldn't find 'checkpoint' file or checkpoints in given directory ", path));
    return CheckpointReader(*latest);
  }
  return CheckpointReader(path);
}

std::vector<std::pair<std::string, Shape>> list_variables(const String& path) {
  const std::map<std::string, Shape> shapes = load_checkpoint(path).get_variable_to_shape_map();
  return {shapes.begin(), shapes.end()};
}

Tensor load_variable(const String& path, const String& name) {
  return load_checkpoint(path).get_tensor(name);
}

void save_variables(const std::string& path, const NamedVariables& variables) {
  CheckpointContents contents;
  for (const auto& [name, variable] : variables)
    contents.items.push_back({name, variable.read_value()});
  saving_for("td::train::save_variables").write_checkpoint(path, std::move(contents));
}

void restore_variables(const std::string& path, const NamedVariables& variables,
                       const RestoreVariablesOptions& options) {
  const auto file = saving_for("td::train::restore_variables").open_checkpoint(path);
  std::vector<std::string> names;
  std::vector<Variable> changed;
  for (const auto& [name, variable] : variables) {
    if (options.allow_missing && !file->contains(name)) continue;
    const DType dtype = file->dtype(name);
    const Shape shape = file->shape(name);
    if (dtype != variable.dtype() || !variable.shape().is_compatible(shape)) {
      throw InvalidArgumentError(cat("Variable '", variable.name(), "' is ", variable.dtype(),
                                     variable.shape(), ", but checkpoint ", path, " has ", dtype,
                                     shape, " under the name '", name, "'."));
    }
    names.push_back(name);
    changed.push_back(variable);
  }
  const auto check = internal::Check::kAllFirst;
  internal::read_in_groups(*file, path, names, check, [&](std::size_t i, Tensor value) {
    changed[i].assign(std::move(value));
  });
}

void init_from_checkpoint(const String& path,
                          const std::map<std::string, std::string>& assignment_map,
                          const std::vector<Variable>& variables) {
  NamedVariables named;
  for (const auto& [theirs, ours] : assignment_map) {
    const bool scope = theirs.ends_with('/') || theirs.empty();
    if (scope != (ours.ends_with('/') || ours.empty())) {
      throw InvalidArgumentError(cat("init_from_checkpoint: '", theirs, "' and '", ours,
                                     "' must both be scopes, which end in '/', or both names."));
    }
    bool any = false;
    for (const Variable& variable : variables) {
      const std::string& name = variable.name();
      if (scope ? !name.starts_with(ours) : name != ours) continue;
      named.emplace(theirs + name.substr(ours.size()), variable);
      any = true;
    }
    if (!any) {
      throw InvalidArgumentError(cat("init_from_checkpoint: no variable is named '", ours,
                                     scope ? "…" : "", "', which checkpoint ", path,
                                     " should initialise."));
    }
  }
  restore_variables(path, named);
}

}  // namespace tandem::train
