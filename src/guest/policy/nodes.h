/* Kinds of syntax tree nodes, of Python 3.11 to 3.14, and how to read and make them from C. */
#pragma once

#include "guest/run/python.h"

#include <stdbool.h>

/* clang-format off */
#define NODE_KINDS(X)                                                                                                          \
	/* statements */                                                                                                       \
	X(FunctionDef) X(AsyncFunctionDef) X(ClassDef) X(Return) X(Delete) X(Assign) X(TypeAlias) X(AugAssign) X(AnnAssign)    \
	X(For) X(AsyncFor) X(While) X(If) X(With) X(AsyncWith) X(Match) X(Raise) X(Try) X(TryStar) X(Assert) X(Import)         \
	X(ImportFrom) X(Global) X(Nonlocal) X(Expr) X(Pass) X(Break) X(Continue)                                               \
	/* expressions */                                                                                                      \
	X(BoolOp) X(NamedExpr) X(BinOp) X(UnaryOp) X(Lambda) X(IfExp) X(Dict) X(Set) X(ListComp) X(SetComp) X(DictComp)        \
	X(GeneratorExp) X(Await) X(Yield) X(YieldFrom) X(Compare) X(Call) X(FormattedValue) X(JoinedStr) X(TemplateStr)        \
	X(Interpolation) X(Constant) X(Attribute) X(Subscript) X(Starred) X(Name) X(List) X(Tuple) X(Slice)                    \
	/* parts */                                                                                                            \
	X(comprehension) X(ExceptHandler) X(arguments) X(arg) X(keyword) X(alias) X(withitem) X(match_case) X(MatchValue)      \
	X(MatchSingleton) X(MatchSequence) X(MatchMapping) X(MatchClass) X(MatchStar) X(MatchAs) X(MatchOr) X(TypeVar)         \
	X(ParamSpec) X(TypeVarTuple) X(TypeIgnore) X(Module) X(Expression)                                                     \
	/* leaves */                                                                                                           \
	X(Load) X(Store) X(Del) X(And) X(Or) X(Add) X(Sub) X(Mult) X(MatMult) X(Div) X(Mod) X(Pow) X(LShift) X(RShift)         \
	X(BitOr) X(BitXor) X(BitAnd) X(FloorDiv) X(Invert) X(Not) X(UAdd) X(USub) X(Eq) X(NotEq) X(Lt) X(LtE) X(Gt) X(GtE)     \
	X(Is) X(IsNot) X(In) X(NotIn)
/* clang-format on */

#define NODE_ENUM(name) NODE_##name,
enum node_kind { NODE_KINDS(NODE_ENUM) NODE_UNKNOWN };
#undef NODE_ENUM

#define NODE_LAST_EXPRESSION NODE_Slice
#define NODE_LAST_PART NODE_Expression

int nodes_prepare(void); /* -1 with a Python error */

enum node_kind node_kind(PyObject *node);   /* NODE_UNKNOWN for what is no node of Python's own */
const char *node_name(PyObject *node);      /* "TryStar" */
PyObject *node_fields(enum node_kind kind); /* borrowed: the tuple of field names */

/* A field; a new reference, NULL without an error when it has none (None counts as none). */
PyObject *node_get(PyObject *node, const char *field);
PyObject *node_list(
	PyObject *node, const char *field); /* borrowed list owned by the node, or NULL */
int node_line(PyObject *node);

/*
 * A node of this kind with the fields in their order (stolen references; NULL fails), placed where
 * `like` is.
 */
PyObject *node_make(enum node_kind kind, PyObject *like, int n, ...);
PyObject *node_leaf(enum node_kind kind); /* Load(), MatMult() …, a new reference */
bool node_is_store(PyObject *node);       /* its ctx is Store or Del */
