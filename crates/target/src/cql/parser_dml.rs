//! SELECT, INSERT, UPDATE, DELETE, BATCH.

use super::ParseError;
use super::ast::{
    Assignment, Batch, BatchKind, Comparison, Condition, Delete, InTerms, Insert, Operator,
    Relation, Select, Selector, Statement, Term, Update, Using,
};
use super::lexer::Kind;
use super::parser::Parser;

const ELEMENT: ParseError = ParseError::Unsupported {
    what: "conditions on an element of a collection",
    cure: "use CONTAINS with ALLOW FILTERING, or a condition on another column",
};
const JSON: ParseError =
    ParseError::Unsupported { what: "JSON", cure: "name the columns and their values" };
const FUNCTION: ParseError = ParseError::Unsupported {
    what: "functions in a SELECT beyond COUNT, WRITETIME, TTL and TOKEN",
    cure: "compute it in the client",
};
const GROUP_BY: ParseError =
    ParseError::Unsupported { what: "GROUP BY", cure: "group the rows in the client" };

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Statement, ParseError> {
        self.word("select")?;
        if self.is_word(0, "json")? && !self.is_sign(1, ",")? && !self.is_word(1, "from")? {
            return Err(JSON);
        }
        let distinct = self.is_word(0, "distinct")?
            && !self.is_sign(1, ",")?
            && !self.is_word(1, "from")?
            && self.take_word("distinct")?;
        let selectors = match self.take_sign("*")? {
            true => None,
            false => Some(self.selectors()?),
        };
        self.word("from")?;
        let table = self.table_name()?;
        let relations = match self.take_word("where")? {
            true => self.relations()?,
            false => Vec::new(),
        };
        if self.is_word(0, "group")? {
            return Err(GROUP_BY);
        }
        let mut order = Vec::new();
        if self.take_words(&["order", "by"])? {
            loop {
                let column = self.name()?;
                let descending = self.direction()?;
                order.push((column, descending));
                if !self.take_sign(",")? {
                    break;
                }
            }
        }
        let per_partition_limit = match self.take_words(&["per", "partition", "limit"])? {
            true => Some(self.term()?),
            false => None,
        };
        let limit = if self.take_word("limit")? { Some(self.term()?) } else { None };
        let allow_filtering = self.take_words(&["allow", "filtering"])?;
        let has_timeout = self.take_words(&["using", "timeout"])?;
        if has_timeout {
            match self.peek(0)? {
                Kind::Duration(_) => drop(self.take()?),
                _ => return Err(self.unexpected("a duration")?),
            }
        }
        Ok(Statement::Select(Select {
            table,
            selectors,
            distinct,
            relations,
            order,
            per_partition_limit,
            limit,
            allow_filtering,
            has_timeout,
        }))
    }

    fn selectors(&mut self) -> Result<Vec<(Selector, Option<String>)>, ParseError> {
        let mut selectors = Vec::new();
        loop {
            self.count_term()?;
            let selector = self.selector()?;
            let alias = if self.take_word("as")? { Some(self.name()?) } else { None };
            selectors.push((selector, alias));
            if !self.take_sign(",")? {
                return Ok(selectors);
            }
        }
    }

    fn selector(&mut self) -> Result<Selector, ParseError> {
        if !self.is_sign(1, "(")? {
            return match self.peek(0)? {
                Kind::Word(_) | Kind::Quoted(_) => self.name().map(Selector::Column),
                _ => Err(self.unexpected("a column")?),
            };
        }
        let function = self.name()?;
        self.sign("(")?;
        if function == "count" {
            let one = matches!(self.peek(0)?, Kind::Integer(_));
            if one || self.is_sign(0, "*")? {
                self.take()?;
                self.sign(")")?;
                return Ok(Selector::Count(None));
            }
        }
        if !matches!(function.as_str(), "count" | "writetime" | "ttl" | "token") {
            return Err(FUNCTION);
        }
        let mut columns = self.names_to_parenthesis()?;
        if function == "token" {
            return Ok(Selector::Token(columns));
        }
        let column = columns.swap_remove(0);
        if !columns.is_empty() {
            return Err(self.error_here("more than one argument")?);
        }
        Ok(match function.as_str() {
            "count" => Selector::Count(Some(column)),
            "writetime" => Selector::Writetime(column),
            _ => Selector::Ttl(column),
        })
    }

    fn relations(&mut self) -> Result<Vec<Relation>, ParseError> {
        let mut relations = vec![self.relation()?];
        while self.take_word("and")? {
            self.count_term()?;
            relations.push(self.relation()?);
        }
        Ok(relations)
    }

    fn relation(&mut self) -> Result<Relation, ParseError> {
        if self.take_sign("(")? {
            let columns = self.names_to_parenthesis()?;
            if self.is_word(0, "in")? {
                return Err(ParseError::Unsupported {
                    what: "IN on several columns",
                    cure: "send one statement per tuple",
                });
            }
            let operator = self.operator()?;
            return match self.term()? {
                Term::Tuple(terms) => Ok(Relation::Tuple { columns, operator, terms }),
                _ => Err(ParseError::Unsupported {
                    what: "a bind marker for a whole tuple",
                    cure: "write (?, ?)",
                }),
            };
        }
        if self.is_word(0, "token")? && self.is_sign(1, "(")? {
            self.take()?;
            self.take()?;
            let columns = self.names_to_parenthesis()?;
            let operator = self.operator()?;
            return Ok(Relation::Token { columns, operator, term: self.term()? });
        }
        let column = self.name()?;
        if self.take_word("in")? {
            return self.in_relation(column);
        }
        if self.is_sign(0, "[")? {
            return Err(ELEMENT);
        }
        let operator = self.operator()?;
        Ok(Relation::Column { column, operator, term: self.term()? })
    }

    fn in_relation(&mut self, column: String) -> Result<Relation, ParseError> {
        Ok(Relation::In { column, terms: self.in_terms()? })
    }

    fn in_terms(&mut self) -> Result<InTerms, ParseError> {
        if !self.is_sign(0, "(")? {
            return Ok(InTerms::Marker(self.marker()?));
        }
        match self.term()? {
            Term::Tuple(terms) => Ok(InTerms::List(terms)),
            _ => Err(self.unexpected("a list of values")?),
        }
    }

    /// `IF ..`, where it comes next; an INSERT knows `NOT EXISTS` alone, and no other knows that.
    fn condition(&mut self, inserts: bool) -> Result<Option<Condition>, ParseError> {
        if !self.take_word("if")? {
            return Ok(None);
        }
        if inserts {
            return match self.take_words(&["not", "exists"])? {
                true => Ok(Some(Condition::NotExists)),
                false => Err(self.unexpected("NOT EXISTS")?),
            };
        }
        if self.take_word("exists")? {
            return Ok(Some(Condition::Exists));
        }
        let mut columns = Vec::new();
        loop {
            self.count_term()?;
            let column = self.name()?;
            if self.is_sign(0, "[")? {
                return Err(ELEMENT);
            }
            let comparison = if self.take_word("in")? {
                Comparison::In(self.in_terms()?)
            } else if self.take_sign("!=")? {
                Comparison::IsNot(self.term()?)
            } else {
                Comparison::Is(self.operator()?, self.term()?)
            };
            columns.push((column, comparison));
            if !self.take_word("and")? {
                return Ok(Some(Condition::Columns(columns)));
            }
        }
    }

    fn operator(&mut self) -> Result<Operator, ParseError> {
        for (sign, operator) in [
            ("=", Operator::Equal),
            ("<", Operator::Less),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterOrEqual),
        ] {
            if self.take_sign(sign)? {
                return Ok(operator);
            }
        }
        if self.take_word("contains")? {
            let key = self.take_word("key")?;
            return Ok(if key { Operator::ContainsKey } else { Operator::Contains });
        }
        for (n, what) in [("like", "LIKE"), ("is", "IS NOT NULL"), ("!=", "!=")] {
            if self.is_word(0, n)? || self.is_sign(0, n)? {
                return Err(ParseError::Unsupported { what, cure: "filter in the client" });
            }
        }
        Err(self.unexpected("an operator")?)
    }

    fn using(&mut self) -> Result<Using, ParseError> {
        let mut using = Using::default();
        if !self.take_word("using")? {
            return Ok(using);
        }
        loop {
            let slot = match (self.take_word("timestamp")?, self.is_word(0, "ttl")?) {
                (true, _) => &mut using.timestamp,
                (false, true) => {
                    self.take()?;
                    &mut using.ttl
                }
                _ => return Err(self.unexpected("TIMESTAMP or TTL")?),
            };
            if slot.is_some() {
                return Err(self.error_here("given twice in USING")?);
            }
            *slot = Some(self.term()?);
            if !self.take_word("and")? {
                return Ok(using);
            }
        }
    }

    pub(super) fn modification(&mut self) -> Result<Statement, ParseError> {
        match self.name()?.as_str() {
            "insert" => self.insert(),
            "update" => self.update(),
            "delete" => self.delete(),
            _ => Err(self.unexpected("INSERT, UPDATE or DELETE")?),
        }
    }

    fn insert(&mut self) -> Result<Statement, ParseError> {
        self.word("into")?;
        let table = self.table_name()?;
        if self.is_word(0, "json")? {
            return Err(JSON);
        }
        self.sign("(")?;
        let columns = self.names_to_parenthesis()?;
        self.word("values")?;
        self.sign("(")?;
        let mut values = vec![self.term()?];
        while self.take_sign(",")? {
            values.push(self.term()?);
        }
        self.sign(")")?;
        let condition = self.condition(true)?;
        let using = self.using()?;
        Ok(Statement::Insert(Insert { table, columns, values, condition, using }))
    }

    fn update(&mut self) -> Result<Statement, ParseError> {
        let table = self.table_name()?;
        let using = self.using()?;
        self.word("set")?;
        let mut assignments = vec![self.assignment()?];
        while self.take_sign(",")? {
            self.count_term()?;
            assignments.push(self.assignment()?);
        }
        self.word("where")?;
        let relations = self.relations()?;
        let condition = self.condition(false)?;
        Ok(Statement::Update(Update { table, using, assignments, relations, condition }))
    }

    fn assignment(&mut self) -> Result<(String, Assignment), ParseError> {
        let column = self.name()?;
        if self.take_sign("[")? {
            let key = self.term()?;
            self.sign("]")?;
            self.sign("=")?;
            return Ok((column, Assignment::Element(key, self.term()?)));
        }
        for (sign, subtract) in [("+", false), ("-", true)] {
            // `c += x`: the lexer knows no such sign, so it comes as two.
            if self.is_sign(0, sign)? && self.is_sign(1, "=")? {
                self.take()?;
                self.take()?;
                let term = self.term()?;
                let add = if subtract { Assignment::Subtract(term) } else { Assignment::Add(term) };
                return Ok((column, add));
            }
        }
        self.sign("=")?;
        let names_itself = match self.peek(0)? {
            Kind::Word(name) | Kind::Quoted(name) => *name == column,
            _ => false,
        };
        if names_itself && (self.is_sign(1, "+")? || self.is_sign(1, "-")?) {
            self.take()?;
            let subtract = self.take_sign("-")?;
            if !subtract {
                self.sign("+")?;
            }
            let term = self.term()?;
            let add = if subtract { Assignment::Subtract(term) } else { Assignment::Add(term) };
            return Ok((column, add));
        }
        let term = self.term()?;
        if !self.take_sign("+")? {
            return Ok((column, Assignment::Set(term)));
        }
        let other = self.name()?;
        match other == column {
            true => Ok((column, Assignment::Prepend(term))),
            false => Err(self.error_here("only X = Y + X is supported, with the same X")?),
        }
    }

    fn delete(&mut self) -> Result<Statement, ParseError> {
        let mut columns = Vec::new();
        while !self.is_word(0, "from")? {
            if !columns.is_empty() {
                self.sign(",")?;
            }
            let column = self.name()?;
            let key = match self.take_sign("[")? {
                true => {
                    let key = self.term()?;
                    self.sign("]")?;
                    Some(key)
                }
                false => None,
            };
            columns.push((column, key));
        }
        self.word("from")?;
        let table = self.table_name()?;
        let using = self.using()?;
        self.word("where")?;
        let relations = self.relations()?;
        let condition = self.condition(false)?;
        Ok(Statement::Delete(Delete { table, columns, using, relations, condition }))
    }

    pub(super) fn batch(&mut self) -> Result<Statement, ParseError> {
        self.word("begin")?;
        let kind = if self.take_word("unlogged")? {
            BatchKind::Unlogged
        } else if self.take_word("counter")? {
            BatchKind::Counter
        } else {
            self.take_word("logged")?;
            BatchKind::Logged
        };
        self.word("batch")?;
        let using = self.using()?;
        let mut statements = Vec::new();
        while !self.take_words(&["apply", "batch"])? {
            self.count_term()?;
            statements.push(self.modification()?);
            self.take_sign(";")?;
        }
        Ok(Statement::Batch(Batch { kind, using, statements }))
    }
}
