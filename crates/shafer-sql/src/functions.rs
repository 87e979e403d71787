//! The functions of SQL: what each takes, and what it gives.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Scalar, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use shafer::Method;
use shafer_arrow::LogitLists;

use crate::arguments;

/// What a function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The distribution by one method, which is in the function's name.
    Named(&'static str),
    Sparsify,
    SparsifyDense,
    SupportSize,
    Ignorance,
    Conflict,
    Belief,
    Draw,
    LogitsError,
}

/// A function of SQL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: String,
    kind: Kind,
    signature: Signature,
}

/// The description of a function for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The call: `entmax(logits[, alpha])`.
    pub call: String,
    /// What it gives.
    pub gives: String,
}

/// All functions, to be registered in a session.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// let context = SessionContext::new();
/// for function in shafer_sql::functions() {
///     context.register_udf(function);
/// }
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sizes = context.sql("SELECT support_size([1.0, 1.0, 0.0]) AS n").await?.collect().await?;
/// assert_eq!(format!("{:?}", sizes[0].column(0)), "PrimitiveArray<Int32>\n[\n  2,\n]");
/// # datafusion::common::Result::<()>::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn functions() -> Vec<ScalarUDF> {
    let named = Method::names().map(|name| (name.replace('-', "_"), Kind::Named(name)));
    let others = [
        ("sparsify", Kind::Sparsify),
        ("sparsify_dense", Kind::SparsifyDense),
        ("support_size", Kind::SupportSize),
        ("ignorance", Kind::Ignorance),
        ("conflict", Kind::Conflict),
        ("belief", Kind::Belief),
        ("draw", Kind::Draw),
        ("logits_error", Kind::LogitsError),
    ];
    let others = others.map(|(name, kind)| (name.to_owned(), kind));
    named
        .chain(others)
        .map(|(name, kind)| {
            // Nothing is drawn without a seed, so that all functions give the same for the same arguments.
            let signature = Signature::user_defined(Volatility::Immutable);
            ScalarUDF::new_from_impl(Function { name, kind, signature })
        })
        .collect()
}

/// What all functions are for, in the order of [`functions`].
///
/// ```
/// let all = shafer_sql::descriptions();
/// assert!(all.iter().any(|function| function.call == "entmax(logits[, alpha])"));
/// assert_eq!(all.len(), shafer_sql::functions().len());
/// ```
pub fn descriptions() -> Vec<Description> {
    let describe = |call: &str, gives: &str| Description { call: call.into(), gives: gives.into() };
    let named = Method::names().map(|name| {
        let parameter = Method::named(name, None).ok().and_then(|method| method.parameter());
        let sql = name.replace('-', "_");
        match parameter {
            Some((parameter, default)) => Description {
                call: format!("{sql}(logits[, {parameter}])"),
                gives: format!("kept classes and their p; {parameter} is {default} if left out"),
            },
            None => describe(&format!("{sql}(logits)"), "kept classes and their p"),
        }
    });
    let others = [
        describe("sparsify(logits[, 'method'])", "the same by any method: 'top-k:k=3'"),
        describe("sparsify_dense(logits[, 'method'])", "probabilities of all classes"),
        describe("support_size(logits[, 'method'])", "how many classes are kept"),
        describe("ignorance(logits)", "mass of evidence on no class in particular"),
        describe("conflict(logits)", "conflict between the evidence for different classes"),
        describe("belief(logits, [classes])", "belief of a set of classes"),
        describe(
            "draw(logits[, 'method'], seed)",
            "a class drawn by the seed of the row, such as id",
        ),
        describe("logits_error(logits)", "what is wrong with a row; null if nothing"),
    ];
    named.chain(others).collect()
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = || {
            let all = descriptions();
            let prefix = format!("{}(", self.name);
            let call = all.iter().find(|known| known.call.starts_with(&prefix));
            let call = call.map_or(self.name.as_str(), |known| known.call.as_str());
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            format!("{}({}) does not exist; call {call}", self.name, given.join(", "))
        };
        let Some((logits, others)) = given.split_first() else { return plan_err!("{}", wrong()) };
        let Some(logits) = arguments::logits(logits) else { return plan_err!("{}", wrong()) };
        let others = match (self.kind, others) {
            (_, []) if !matches!(self.kind, Kind::Belief | Kind::Draw) => vec![],
            (Kind::Named(name), [parameter])
                if arguments::has_parameter(name) && arguments::is_number(parameter) =>
            {
                vec![DataType::Float64]
            }
            (Kind::Sparsify | Kind::SparsifyDense | Kind::SupportSize, [method])
                if arguments::is_text(method) =>
            {
                vec![DataType::Utf8]
            }
            (Kind::Belief, [set]) => match arguments::set(set) {
                Some(set) => vec![set],
                None => return plan_err!("{}", wrong()),
            },
            (Kind::Draw, [seed]) if arguments::is_seed(seed) => vec![arguments::seed(seed)],
            (Kind::Draw, [method, seed])
                if arguments::is_text(method) && arguments::is_seed(seed) =>
            {
                vec![DataType::Utf8, arguments::seed(seed)]
            }
            _ => return plan_err!("{}", wrong()),
        };
        Ok(std::iter::once(logits).chain(others).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let Some(logits) = given.first() else { return plan_err!("{} without logits", self.name) };
        Ok(match self.kind {
            Kind::Named(_) | Kind::Sparsify => {
                shafer_arrow::sparse_type(logits).map_err(|error| self.failed(None, &error))?
            }
            Kind::SparsifyDense => logits.clone(),
            Kind::SupportSize | Kind::Draw => DataType::Int32,
            Kind::Ignorance | Kind::Conflict | Kind::Belief => DataType::Float64,
            Kind::LogitsError => DataType::Utf8,
        })
    }

    /// Also checks a method and a parameter, so that a wrong one fails before anything is read.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // What is not a literal yet can become one.
        let given = self.method_argument(types.len());
        if let Some(Some(literal)) = given.and_then(|given| args.scalar_arguments.get(given)) {
            self.method(Argument::Constant(literal))?;
        }
        Ok(Arc::new(Field::new(&self.name, self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let method = match self.method_argument(args.args.len()).map(|given| &args.args[given]) {
            None => self.method(Argument::None)?,
            Some(ColumnarValue::Scalar(value)) => self.method(Argument::Constant(value))?,
            Some(ColumnarValue::Array(_)) => self.method(Argument::Column)?,
        };
        let Some(method) = method else {
            // A null for a method or a parameter.
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_type())?));
        };
        let logits = args.args[0].clone().into_array(rows)?;
        let column = args.arg_fields.first().map(|field| field.name().as_str());
        let result =
            self.compute(&logits, method, &args.args[1..], rows).map_err(
                |failure| match failure {
                    Failure::Rows(error) => self.failed(column, &error),
                    Failure::Other(error) => error,
                },
            )?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }

    fn is_strict(&self) -> bool {
        true
    }
}

/// What a function was given for its method or the parameter of it.
#[derive(Clone, Copy)]
enum Argument<'a> {
    None,
    Constant(&'a ScalarValue),
    Column,
}

/// Why a function failed.
enum Failure {
    Rows(shafer_arrow::Error),
    Other(DataFusionError),
}

impl From<shafer_arrow::Error> for Failure {
    fn from(error: shafer_arrow::Error) -> Self {
        Self::Rows(error)
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Other(error)
    }
}

impl Function {
    /// The place of the argument that is the method or its parameter.
    fn method_argument(&self, count: usize) -> Option<usize> {
        match self.kind {
            Kind::Named(_) | Kind::Sparsify | Kind::SparsifyDense | Kind::SupportSize => {
                (count == 2).then_some(1)
            }
            Kind::Draw => (count == 3).then_some(1),
            _ => None,
        }
    }

    /// The method, from the argument that says it. `None` if that is null.
    fn method(&self, argument: Argument<'_>) -> Result<Option<Method>> {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", self.name);
        let argument = match argument {
            Argument::None => None,
            Argument::Constant(value) if value.is_null() => return Ok(None),
            Argument::Constant(value) => Some(value),
            Argument::Column => {
                let what = if matches!(self.kind, Kind::Named(_)) { "parameter" } else { "method" };
                return plan_err!("{}", fail(&format!("the {what} must be a constant")));
            }
        };
        let method = match (self.kind, argument) {
            (Kind::Named(name), value) => {
                let value = value.map(|value| value.cast_to(&DataType::Float64)).transpose()?;
                let value = match value {
                    Some(ScalarValue::Float64(value)) => value,
                    _ => None,
                };
                Method::named(name, value)
            }
            (_, None) => Ok(Method::EVIDENTIAL),
            (_, Some(value)) => match value.try_as_str().flatten() {
                Some(text) => text.parse(),
                None => return plan_err!("{}", fail(&"the method must be text")),
            },
        };
        method.map(Some).map_err(|error| DataFusionError::Plan(fail(&error)))
    }

    fn compute(
        &self,
        logits: &ArrayRef,
        method: Method,
        others: &[ColumnarValue],
        rows: usize,
    ) -> std::result::Result<ArrayRef, Failure> {
        if self.kind == Kind::LogitsError {
            return Ok(errors(logits));
        }
        let lists = LogitLists::new(logits)?;
        Ok(match (self.kind, others) {
            (Kind::Named(_) | Kind::Sparsify, _) => lists.sparse(method)?.0,
            (Kind::SparsifyDense, _) => lists.dense(method)?,
            (Kind::SupportSize, _) => Arc::new(lists.support_size(method)?),
            (Kind::Ignorance, _) => Arc::new(lists.ignorance()?),
            (Kind::Conflict, _) => Arc::new(lists.conflict()?),
            (Kind::Belief, [ColumnarValue::Scalar(set)]) => {
                Arc::new(lists.belief(&Scalar::new(set.to_array().map_err(Failure::Other)?))?)
            }
            (Kind::Belief, [ColumnarValue::Array(sets)]) => Arc::new(lists.belief(sets)?),
            (Kind::Draw, [.., seeds]) => {
                let seeds = seeds.clone().into_array(rows)?;
                let seeds = match seeds.as_primitive_opt::<Int64Type>() {
                    // Every integer is a seed, those below 0 too.
                    Some(signed) => signed.unary(|seed| seed as u64),
                    None => seeds.as_primitive::<UInt64Type>().clone(),
                };
                Arc::new(lists.draw(method, &seeds)?)
            }
            // The types were checked.
            _ => {
                let problem = format!("{}: wrong arguments", self.name);
                return Err(Failure::Other(DataFusionError::Internal(problem)));
            }
        })
    }

    fn failed(&self, column: Option<&str>, error: &shafer_arrow::Error) -> DataFusionError {
        let column = column.unwrap_or("logits");
        let (name, external) = (&self.name, format!("{error}"));
        DataFusionError::External(Box::new(crate::RowError {
            message: format!("{name}({column}): {external}"),
            column: column.to_owned(),
        }))
    }
}

/// What is wrong with each row; null for rows that are null or valid.
fn errors(logits: &ArrayRef) -> ArrayRef {
    let error = |row: usize| {
        let row = logits.slice(row, 1);
        let checked =
            LogitLists::new(&row).and_then(|lists| lists.support_size(Method::EVIDENTIAL));
        // The row is that of the result.
        let error = checked.err()?.to_string();
        let text = error.strip_prefix("row 0").unwrap_or(&error);
        Some(text.trim_start_matches([',', ':', ' ']).to_owned())
    };
    Arc::new((0..logits.len()).map(error).collect::<StringArray>())
}
