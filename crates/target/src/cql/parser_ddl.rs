//! CREATE, ALTER, DROP, TRUNCATE.

use super::ParseError;
use super::ast::{
    AlterAction, ColumnDefinition, CreateTable, Describe, Property, PropertyValue, Statement,
    TableName,
};
use super::lexer::Kind;
use super::parser::Parser;

/// Kinds of objects that Cassandra has and the target has not.
const UNSUPPORTED: [(&str, &str, &str); 9] = [
    ("type", "user-defined types", "use a tuple or separate columns"),
    ("index", "secondary indexes", "query by key, or use ALLOW FILTERING"),
    ("custom", "secondary indexes", "query by key, or use ALLOW FILTERING"),
    ("materialized", "materialized views", "write to a second table"),
    ("function", "user-defined functions", "compute it in the client"),
    ("aggregate", "user-defined aggregates", "compute it in the client"),
    ("trigger", "triggers", "leave it out"),
    ("role", "roles and permissions", "it has no users, leave the statement out"),
    ("user", "roles and permissions", "it has no users, leave the statement out"),
];

const COMPACT: ParseError = ParseError::Unsupported {
    what: "COMPACT STORAGE",
    cure: "leave it out: the table has the same columns without it",
};

impl Parser<'_> {
    pub(super) fn describe(&mut self) -> Result<Statement, ParseError> {
        self.take()?;
        let full = self.take_word("full")?;
        let what = if full || self.is_word(0, "schema")? {
            self.word("schema")?;
            Describe::Schema { full }
        } else {
            self.described()?
        };
        // It would add the id of a table.
        self.take_words(&["with", "internals"])?;
        Ok(Statement::Describe(what))
    }

    fn described(&mut self) -> Result<Describe, ParseError> {
        let only = self.take_word("only")?;
        if only || self.is_word(0, "keyspace")? {
            self.word("keyspace")?;
            let named = match self.peek(0)? {
                Kind::Word(word) => word != "with",
                kind => matches!(kind, Kind::Quoted(_)),
            };
            return Ok(Describe::Keyspace { name: named.then(|| self.name()).transpose()?, only });
        }
        if self.take_word("table")? {
            return Ok(Describe::Table(self.table_name()?));
        }
        for (word, what) in [
            ("cluster", Describe::Cluster),
            ("keyspaces", Describe::Keyspaces),
            ("tables", Describe::Tables),
            ("types", Describe::Others),
            ("functions", Describe::Others),
            ("aggregates", Describe::Others),
        ] {
            if self.take_word(word)? {
                return Ok(what);
            }
        }
        Ok(Describe::Any(self.table_name()?))
    }

    pub(super) fn schema_statement(&mut self) -> Result<Statement, ParseError> {
        let verb = self.name()?;
        if verb == "truncate" {
            self.take_word("table")?;
            self.take_word("columnfamily")?;
            return Ok(Statement::Truncate(self.table_name()?));
        }
        let kind = self.name()?;
        if kind == "or" {
            return Err(ParseError::Unsupported {
                what: "user-defined functions",
                cure: "compute it in the client",
            });
        }
        if let Some((_, what, cure)) = UNSUPPORTED.iter().find(|(word, ..)| *word == kind) {
            return Err(ParseError::Unsupported { what, cure });
        }
        match (verb.as_str(), kind.as_str()) {
            ("create", "keyspace" | "schema") => self.create_keyspace(),
            ("alter", "keyspace" | "schema") => {
                let name = self.name()?;
                self.word("with")?;
                Ok(Statement::AlterKeyspace { name, options: self.properties()? })
            }
            ("drop", "keyspace" | "schema") => {
                let if_exists = self.take_words(&["if", "exists"])?;
                Ok(Statement::DropKeyspace { name: self.name()?, if_exists })
            }
            ("create", "table" | "columnfamily") => self.create_table(),
            ("alter", "table" | "columnfamily") => self.alter_table(),
            ("drop", "table" | "columnfamily") => {
                let if_exists = self.take_words(&["if", "exists"])?;
                Ok(Statement::DropTable { table: self.table_name()?, if_exists })
            }
            _ => Err(self.unexpected(&format!("KEYSPACE or TABLE after {}, before", verb))?),
        }
    }

    fn create_keyspace(&mut self) -> Result<Statement, ParseError> {
        let if_not_exists = self.take_words(&["if", "not", "exists"])?;
        let name = self.name()?;
        self.word("with")?;
        Ok(Statement::CreateKeyspace { name, if_not_exists, options: self.properties()? })
    }

    fn properties(&mut self) -> Result<Vec<Property>, ParseError> {
        let mut properties = vec![self.property()?];
        while self.take_word("and")? {
            properties.push(self.property()?);
        }
        Ok(properties)
    }

    fn property(&mut self) -> Result<Property, ParseError> {
        let name = self.name()?;
        self.sign("=")?;
        if !self.take_sign("{")? {
            return Ok(Property { name, value: PropertyValue::Scalar(self.scalar()?) });
        }
        let mut pairs = Vec::new();
        while !self.take_sign("}")? {
            if !pairs.is_empty() {
                self.sign(",")?;
            }
            let key = self.scalar()?;
            self.sign(":")?;
            pairs.push((key, self.scalar()?));
        }
        Ok(Property { name, value: PropertyValue::Map(pairs) })
    }

    /// The text of a constant.
    fn scalar(&mut self) -> Result<String, ParseError> {
        self.count_term()?;
        let minus = self.take_sign("-")?;
        match self.peek(0)? {
            Kind::Text(_) | Kind::Word(_) | Kind::Integer(_) | Kind::Float(_) => {}
            _ => return Err(self.unexpected("a constant")?),
        }
        Ok(match self.take()?.kind {
            Kind::Integer(text) | Kind::Float(text) if minus => format!("-{text}"),
            Kind::Text(text) | Kind::Word(text) | Kind::Integer(text) | Kind::Float(text) => text,
            _ => String::new(),
        })
    }

    fn create_table(&mut self) -> Result<Statement, ParseError> {
        let if_not_exists = self.take_words(&["if", "not", "exists"])?;
        let table = self.table_name()?;
        let mut create = new_table(table, if_not_exists);
        self.sign("(")?;
        loop {
            self.table_element(&mut create)?;
            // Between two commas, and behind the last, there may be nothing.
            let mut commas = 0;
            while self.take_sign(",")? {
                commas += 1;
            }
            if commas == 0 {
                self.sign(")")?;
                break;
            }
            if self.take_sign(")")? {
                break;
            }
        }
        if self.take_word("with")? {
            loop {
                self.table_property(&mut create)?;
                if !self.take_word("and")? {
                    break;
                }
            }
        }
        Ok(Statement::CreateTable(create))
    }

    fn table_element(&mut self, create: &mut CreateTable) -> Result<(), ParseError> {
        self.count_term()?;
        if self.is_word(0, "primary")? && self.is_word(1, "key")? {
            let again = !create.partition_key.is_empty();
            self.take_words(&["primary", "key"])?;
            if again {
                return Err(self.error_here("more than one PRIMARY KEY")?);
            }
            return self.primary_key(create);
        }
        let column = self.column_definition()?;
        if self.take_words(&["primary", "key"])? {
            if !create.partition_key.is_empty() {
                return Err(self.error_here("more than one PRIMARY KEY")?);
            }
            create.partition_key.push(column.name.clone());
        }
        create.columns.push(column);
        Ok(())
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition, ParseError> {
        let name = self.name()?;
        let type_name = self.type_name()?;
        let is_static = self.take_word("static")?;
        Ok(ColumnDefinition { name, type_name, is_static })
    }

    fn primary_key(&mut self, create: &mut CreateTable) -> Result<(), ParseError> {
        self.sign("(")?;
        create.partition_key = match self.take_sign("(")? {
            true => self.names_to_parenthesis()?,
            false => vec![self.name()?],
        };
        if self.take_sign(",")? {
            create.clustering = self.names_to_parenthesis()?;
        } else {
            self.sign(")")?;
        }
        Ok(())
    }

    fn table_property(&mut self, create: &mut CreateTable) -> Result<(), ParseError> {
        if self.take_words(&["compact", "storage"])? {
            return Err(COMPACT);
        }
        if !self.take_words(&["clustering", "order", "by"])? {
            let property = self.property()?;
            create.options.push(property);
            return Ok(());
        }
        self.sign("(")?;
        loop {
            let column = self.name()?;
            let descending = self.direction()?;
            create.order.push((column, descending));
            if !self.take_sign(",")? {
                return self.sign(")");
            }
        }
    }

    /// `ASC`, `DESC` or nothing; true for descending.
    pub(super) fn direction(&mut self) -> Result<bool, ParseError> {
        Ok(!self.take_word("asc")? && self.take_word("desc")?)
    }

    fn alter_table(&mut self) -> Result<Statement, ParseError> {
        let table = self.table_name()?;
        if self.take_word("with")? {
            let action = AlterAction::With(self.properties()?);
            return Ok(Statement::AlterTable { table, action });
        }
        for (word, what) in [
            ("drop", "ALTER TABLE .. DROP"),
            ("rename", "ALTER TABLE .. RENAME"),
            ("alter", "ALTER TABLE .. ALTER"),
        ] {
            if self.is_word(0, word)? {
                return Err(ParseError::Unsupported {
                    what,
                    cure: "create a new table with the columns you want",
                });
            }
        }
        self.word("add")?;
        let parenthesis = self.take_sign("(")?;
        let mut columns = vec![self.column_definition()?];
        while self.take_sign(",")? {
            columns.push(self.column_definition()?);
        }
        if parenthesis {
            self.sign(")")?;
        }
        Ok(Statement::AlterTable { table, action: AlterAction::Add(columns) })
    }
}

fn new_table(table: TableName, if_not_exists: bool) -> CreateTable {
    CreateTable {
        table,
        if_not_exists,
        columns: Vec::new(),
        partition_key: Vec::new(),
        clustering: Vec::new(),
        order: Vec::new(),
        options: Vec::new(),
    }
}
