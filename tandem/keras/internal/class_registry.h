#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tandem/keras/internal/arguments.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

/// The classes whose objects can be made from a Config, by Keras' names. Filled by objects beside
/// the classes while the library is loaded; a user's classes are added later (serialization.h).
template <class Handle>
class ClassRegistry {
 public:
  using Make = std::function<Handle(ArgumentReader&)>;

  bool add(const std::string& name, Make make) {
    classes_[name] = std::move(make);
    return true;
  }
  /// Null if there is no such class.
  const Make* find(const std::string& name) const {
    const auto found = classes_.find(name);
    return found == classes_.end() ? nullptr : &found->second;
  }
  static ClassRegistry& instance();

 private:
  std::map<std::string, Make> classes_;
};

/// Makes an object of a registered class. `kind` is what errors call it: "layer".
template <class Handle>
Handle make_object(const char* kind, const ConfigObject& object) {
  const auto* make = ClassRegistry<Handle>::instance().find(object.class_name);
  if (!make) {
    throw UnimplementedError(cat("There is no ", kind, " of class '", object.class_name,
                                 "' in Tandem. Register one of your own: "
                                 "tandem/keras/serialization.h."));
  }
  std::string who = object.class_name;
  if (const ConfigValue* name = object.config.find("name"))
    if (const auto* text = std::get_if<std::string>(name)) who += " '" + *text + "'";
  ArgumentReader arguments(object.config, who);
  Handle made = (*make)(arguments);
  arguments.check_all_used();
  return made;
}

/// Registers `Class`, which is made as Class(positional…, options).
template <class Handle, class Class, class Options, class... Positional, class List>
bool register_class(const char* name, const List&) {
  ClassRegistry<Handle>::instance().add(name, [](ArgumentReader& arguments) -> Handle {
    Options options = Options();
    arguments.settings(options);
    std::tuple<Positional...> positional{initial_argument<Positional>()...};
    return std::apply(
        [&](auto&... each) -> Handle {
          List()(arguments, options, each...);
          return Class(each..., options);
        },
        positional);
  });
  return true;
}

/// … of a layer.
template <class Class, class Options, class... Positional, class List>
bool register_layer_class(const char* name, const List& list) {
  return register_class<Layer, Class, Options, Positional...>(name, list);
}

/// A layer that remembers what it was made with.
template <class Impl, class List, class... Arguments>
std::shared_ptr<Impl> with_arguments(std::shared_ptr<Impl> layer, const List& list,
                                     const Arguments&... arguments) {
  layer->set_arguments(written_arguments(list, arguments...));
  return layer;
}

}  // namespace tandem::keras::internal
