#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/graph/op_decl.h"

namespace tandem {

/// One declared input or output: a value, `number_attr` values of one type, or a list of types.
struct ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;  ///< when fixed
  std::string type_attr;          ///< attribute holding the type
  std::string number_attr;        ///< attribute holding the count of a homogeneous list
  std::string type_list_attr;     ///< attribute holding the types of a heterogeneous list
  bool is_ref = false;
  bool is_list() const { return !number_attr.empty() || !type_list_attr.empty(); }
};

/// One declared attribute.
struct AttrDef {
  std::string name;
  std::string kind;  ///< "int", "list(type)", …
  AttrValue default_value;
  DTypeSet allowed_types;                    ///< empty: any
  std::vector<std::string> allowed_strings;  ///< empty: any
  std::int64_t minimum = INT64_MIN;
  bool has_minimum = false;
  bool inferred = false;  ///< follows from the inputs; callers need not give it
};

/// A declaration, read and checked. Immutable; owned by the registry.
struct TANDEM_EXPORT OpDef : std::enable_shared_from_this<OpDef> {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  ShapeFn shape = nullptr;
  GradientFn gradient = nullptr;
  RewriteFn rewrite = nullptr;
  RewriteFn fuse = nullptr;
  FlopsFn flops = nullptr;
  OpTraits traits;
  std::string doc;
  std::uint32_t id = 0;

  /// When no argument is a list: for each output, the input whose dtype it has, or -1.
  std::vector<int> output_like_input;
  bool plain_arguments = false;  ///< no argument is a list

  const AttrDef* find_attr(std::string_view attr) const;
  /// The text that `td ops NAME` prints.
  std::string to_string() const;

  /// Throws InternalError naming the op when the declaration is malformed.
  static OpDef parse(const OpDecl& decl, std::uint32_t id);
};

/// Throws InvalidArgumentError if the value has the wrong kind or is not allowed.
TANDEM_EXPORT void check_attr(const OpDef& op, const AttrDef& def, const AttrValue& value);

/// The attributes of a call made complete: defaults filled in, those that follow from the inputs
/// inferred, kinds and constraints checked. Throws InvalidArgumentError naming op, argument and
/// what was expected.
TANDEM_EXPORT AttrMap complete_attrs(const OpDef& op, const std::vector<DType>& inputs,
                                     const AttrMap& given);

/// The dtypes of the outputs, given complete attributes.
TANDEM_EXPORT std::vector<DType> output_dtypes(const OpDef& op, const AttrMap& complete);

}  // namespace tandem
